// Reads the answers to every case with the official SDKs in TypeScript, and prints them as JSON: `node sdks.mjs CASE…`, or `real MODEL QUESTION`.
//
// `ai` checks every event and every body against the schemas of its provider; the vendors' own SDKs put messages together.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// The packages are not next to this file.
const require = createRequire(join(process.env.TIDEGATE_TEST_NODE_MODULES, "index.js"));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { default: Anthropic } = await load("@anthropic-ai/sdk");
const { default: OpenAI } = await load("openai");
const { generateText, streamText, tool, jsonSchema } = await load("ai");
const { createAnthropic } = await load("@ai-sdk/anthropic");
const { createOpenAI } = await load("@ai-sdk/openai");

const claude = new Anthropic({ apiKey: "a-key", maxRetries: 0 });
const gpt = new OpenAI({ apiKey: "o-key", maxRetries: 0 });
const [first, ...rest] = process.argv.slice(2);
const isReal = first === "real";
const LIMIT = isReal ? 24 : 60;
const asked = (content) => [{ role: "user", content }];

const ofMessage = (message) => ({
  text: message.content.filter((block) => block.type === "text").map((block) => block.text).join(""),
  thought: message.content.filter((block) => block.type === "thinking").map((block) => [block.thinking, block.signature]),
  calls: message.content.filter((block) => block.type === "tool_use").map((block) => [block.name, block.input]),
  end: message.stop_reason,
});

async function* messages(question, model) {
  const request = { model, max_tokens: LIMIT, messages: asked(question) };
  const stream = claude.messages.stream(request);
  const kinds = [];
  for await (const event of stream) kinds.push(event.type);
  const count = (kind) => kinds.filter((one) => one === kind).length;
  assert.deepEqual([count("message_start"), count("message_stop"), kinds.at(-1)], [1, 1, "message_stop"]);
  yield ["stream", ofMessage(await stream.finalMessage())];
  yield ["whole", ofMessage(await claude.messages.create(request))];
}

const ofCompletion = ({ choices: [{ message, finish_reason }] }) => ({
  text: message.content ?? "",
  // The SDK knows no reasoning in this format.
  thought: [],
  calls: (message.tool_calls ?? []).map((call) => [call.function.name, JSON.parse(call.function.arguments)]),
  end: finish_reason,
});

async function* completions(question, model) {
  const request = { model, max_tokens: LIMIT, messages: asked(question) };
  const stream = gpt.chat.completions.stream(request);
  const ids = new Set();
  for await (const chunk of stream) ids.add(chunk.id);
  assert.equal(ids.size, 1);
  const completion = await stream.finalChatCompletion();
  yield ["stream", ofCompletion(completion)];
  yield ["whole", ofCompletion(await gpt.chat.completions.create(request))];
}

const ofResponse = (response) => ({
  text: response.output_text,
  thought: response.output.filter((item) => item.type === "reasoning").flatMap((item) => item.summary.map((part) => [part.text, null])),
  calls: response.output.filter((item) => item.type === "function_call").map((item) => [item.name, JSON.parse(item.arguments)]),
  end: response.status,
});

async function* responses(question, model) {
  const request = { model, max_output_tokens: LIMIT, input: question };
  if (isReal) {
    // The events of its server have no indices, which the SDK needs to put a response together.
    let text = "";
    for await (const event of await gpt.responses.create({ ...request, stream: true })) {
      if (event.type === "response.output_text.delta") text += event.delta;
    }
    yield ["stream", { text }];
  } else {
    const stream = gpt.responses.stream(request);
    const numbers = [];
    for await (const event of stream) numbers.push(event.sequence_number);
    assert.deepEqual(numbers, numbers.map((_, at) => at));
    yield ["stream", ofResponse(await stream.finalResponse())];
  }
  yield ["whole", ofResponse(await gpt.responses.create(request))];
}

// The calls are not run.
const object = jsonSchema({ type: "object", properties: {}, additionalProperties: true });
const tools = { write: tool({ description: "Writes.", inputSchema: object }), read: tool({ description: "Reads.", inputSchema: object }) };

const ofResult = async (result) => ({
  text: await result.text,
  thought: (await result.reasoning).map((part) => [part.text, part.providerMetadata?.anthropic?.signature ?? null]),
  calls: (await result.toolCalls).map((call) => [call.toolName, call.input]),
  end: await result.finishReason,
});

/** A provider of `ai`. */
const ai = (provider) =>
  async function* (question, model) {
    const request = { model: provider(model), prompt: question, tools, maxOutputTokens: LIMIT, maxRetries: 0 };
    let failure = null;
    const result = streamText({ ...request, onError: ({ error }) => (failure = error) });
    for await (const part of result.fullStream ?? result.stream) assert.notEqual(part.type, "error", String(part.error));
    assert.equal(failure, null);
    yield ["stream", await ofResult(result)];
    yield ["whole", await ofResult(await generateText(request))];
  };

const aiClaude = createAnthropic({ apiKey: "a-key", baseURL: `${process.env.ANTHROPIC_BASE_URL}/v1` });
const aiGpt = createOpenAI({ apiKey: "o-key", baseURL: process.env.OPENAI_BASE_URL });
const sdks = {
  anthropic: messages,
  "openai chat": completions,
  "openai responses": responses,
  "ai anthropic": ai((model) => aiClaude(model)),
  "ai chat": ai((model) => aiGpt.chat(model)),
  "ai responses": ai((model) => aiGpt.responses(model)),
};
// It refuses the events of that server without a gateway, too.
if (isReal) delete sdks["ai responses"];

const questions = isReal ? [["real", rest[1], rest[0]]] : [first, ...rest].map((name) => [name, `case: ${name}`, "m"]);
const seen = {};
for (const [name, question, model] of questions) {
  for (const [sdk, ask] of Object.entries(sdks)) {
    for await (const [mode, answer] of ask(question, model)) seen[`${name}/${sdk}/${mode}`] = answer;
  }
}
console.log(JSON.stringify(seen));
