// Reads the committed streams with the schemas and the clients of their conventions, and prints the text that each shows, by session and turn.
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [corpus] = process.argv.slice(2);
const require = createRequire(join(process.env.TIDEGATE_TEST_NODE_MODULES, 'package.json'));
const load = name => import(pathToFileURL(require.resolve(name)));
const { readUIMessageStream, uiMessageChunkSchema } = await load('ai');
const { verifyEvents, defaultApplyEvents, HttpAgent } = await load('@ag-ui/client');
const { EventSchema } = await load('@ag-ui/core/schemas');
const { from, lastValueFrom, toArray } = await load('rxjs');

const lines = (folder, name) =>
  readFileSync(join(corpus, folder, name), 'utf8').trim().split('\n').filter(Boolean).map(line => JSON.parse(line));

// The messages of the assistant that `readUIMessageStream` makes of the streams of a session.
async function ofUiStream(name) {
  const schema = uiMessageChunkSchema();
  const messages = new Map();
  let chunks = [];
  for (const chunk of lines('ui-stream', name)) {
    if (chunk !== '[DONE]') {
      const read = await schema.validate(chunk);
      if (!read.success) throw new Error(`${name}: ${JSON.stringify(chunk)}: ${read.error}`);
      chunks.push(read.value);
      continue;
    }
    const id = chunks[0].messageId;
    const stream = ReadableStream.from(chunks);
    chunks = [];
    const onError = () => {};
    for await (const message of readUIMessageStream({ message: messages.get(id), stream, onError })) messages.set(id, message);
  }
  const text = message => message.parts.filter(part => part.type === 'text').map(part => part.text).join('');
  return Object.fromEntries([...messages].map(([id, message]) => [id.replace('turn-', ''), text(message)]));
}

// The messages that `HttpAgent` has after the runs of a session.
async function ofAgUi(name) {
  const agent = new HttpAgent({ url: 'http://localhost/' });
  let messages = [];
  let run = [];
  for (const event of lines('ag-ui', name)) {
    const read = EventSchema.safeParse(event);
    if (!read.success) throw new Error(`${name}: ${JSON.stringify(event)}: ${read.error}`);
    run.push(event);
    if (event.type !== 'RUN_FINISHED' && event.type !== 'RUN_ERROR') continue;
    const input = { threadId: 'thread', runId: run[0].runId, messages, tools: [], context: [], state: {} };
    agent.setMessages(messages);
    const applied = defaultApplyEvents(input, verifyEvents()(from(run)), agent, []);
    for (const change of await lastValueFrom(applied.pipe(toArray()))) messages = change.messages ?? messages;
    run = [];
  }
  const texts = {};
  for (const { id, role, content } of messages.filter(({ role, content }) => role === 'assistant' && content)) {
    const turn = id.split('.')[0];
    texts[turn] = (texts[turn] ?? '') + content;
  }
  return texts;
}

const seen = {};
for (const name of readdirSync(join(corpus, 'ui-stream'))) {
  const session = name.replace('.jsonl', '');
  const shown = texts => Object.fromEntries(Object.entries(texts).filter(([, text]) => text));
  seen[session] = { uiStream: shown(await ofUiStream(name)), agUi: shown(await ofAgUi(name)) };
}
console.log(JSON.stringify(seen));
