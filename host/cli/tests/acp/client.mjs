// An editor with the TypeScript SDK of the protocol, which checks every message of the agent against its schemas.
//
// node client.mjs WORKSPACE PROGRAM [ARGUMENT…]: exits with 0 if everything was as expected. Where the program is a URL, it connects to that with
// websockets, with the token in TIDEGATE_TEST_TOKEN.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [workspace, program, ...rest] = process.argv.slice(2);
// The packages are not next to this file.
const require = createRequire(join(process.env.TIDEGATE_TEST_NODE_MODULES, "index.js"));
const acp = await import(pathToFileURL(require.resolve("@agentclientprotocol/sdk")));
const { session } = acp.methods.agent;
const { createWebSocketStream } = await import(pathToFileURL(require.resolve("@agentclientprotocol/sdk/experimental/ws-client")));

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";

/** What the editor's user does, and what the editor was sent. */
const state = { decide: "reject_once", updates: [], asked: 0, buffers: new Map(), first: null };

const client = acp
  .client({ name: "typescript-client" })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    state.asked += 1;
    const option = params.options.find((one) => one.kind === state.decide);
    assert.ok(option, `no option of the kind ${state.decide}`);
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  })
  .onRequest(acp.methods.client.fs.readTextFile, ({ params }) => {
    const text = state.buffers.get(params.path);
    if (text === undefined) throw acp.RequestError.resourceNotFound(params.path);
    return { content: text };
  })
  .onRequest(acp.methods.client.fs.writeTextFile, ({ params }) => {
    state.buffers.set(params.path, params.content);
    return {};
  })
  .onNotification(acp.methods.client.session.update, ({ params }) => {
    state.updates.push(params.update);
    state.first?.(params.update);
  });

const text = () =>
  state.updates.filter((one) => one.sessionUpdate === "agent_message_chunk").map((one) => one.content.text).join("");
const kinds = () => new Set(state.updates.map((one) => one.sessionUpdate));

/** A connection, and what ends it. */
function start() {
  if (program.startsWith("ws://")) {
    const url = `${program}?token=${process.env.TIDEGATE_TEST_TOKEN}`;
    return { stream: createWebSocketStream(url), ended: async () => {} };
  }
  const agent = spawn(program, rest, { cwd: workspace, stdio: ["pipe", "pipe", "inherit"] });
  const ended = async () => {
    agent.stdin.end();
    await new Promise((exited) => (agent.exitCode === null ? agent.once("exit", exited) : exited()));
  };
  return { stream: acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)), ended };
}

async function connected(run) {
  const { stream, ended } = start();
  try {
    return await client.connectWith(stream, async (ctx) => {
      const initialized = await ctx.request(acp.methods.agent.initialize, {
        protocolVersion: acp.PROTOCOL_VERSION,
        clientCapabilities: { fs: { readTextFile: true, writeTextFile: true } },
        clientInfo: { name: "typescript-client", version: "1" },
      });
      assert.equal(initialized.protocolVersion, 1);
      const prompt = async (sessionId, blocks) => {
        state.updates = [];
        const list = typeof blocks === "string" ? [{ type: "text", text: blocks }] : blocks;
        const { stopReason } = await ctx.request(session.prompt, { sessionId, prompt: list });
        return stopReason;
      };
      return await run(ctx, prompt, initialized);
    });
  } finally {
    await ended();
  }
}

async function refused(request) {
  const error = await request.then(
    () => assert.fail("the request was not refused"),
    (error) => error,
  );
  return error.code;
}

const id = await connected(async (ctx, prompt, initialized) => {
  assert.ok(initialized.agentCapabilities.promptCapabilities.image);
  const { sessionId, modes, configOptions } = await ctx.request(session.new, { cwd: workspace, mcpServers: [] });
  assert.equal(modes.currentModeId, "ask");
  assert.ok(configOptions.some((option) => option.id === "mode"));

  assert.equal(await prompt(sessionId, "think Good morning"), "end_turn");
  assert.equal(text(), "Good morning");
  assert.ok(kinds().has("agent_thought_chunk") && !kinds().has("user_message_chunk"));

  // Denied, then approved: the file is the client's.
  const file = join(workspace, "denied.txt");
  assert.equal(await prompt(sessionId, "write denied.txt one"), "end_turn");
  assert.ok(!state.buffers.has(file) && !existsSync(file));
  state.decide = "allow_once";
  const buffer = join(workspace, "buffer.txt");
  state.buffers.set(buffer, "not saved\n");
  writeFileSync(buffer, "on the disk\n");
  assert.equal(await prompt(sessionId, "read buffer.txt"), "end_turn");
  assert.match(text(), /not saved/);
  assert.equal(await prompt(sessionId, "write buffer.txt changed"), "end_turn");
  assert.equal(state.buffers.get(buffer), "changed");
  assert.equal(readFileSync(buffer, "utf8"), "on the disk\n");
  const diff = state.updates.flatMap((one) => one.content ?? []).find((one) => one.type === "diff");
  assert.deepEqual([diff.path, diff.oldText, diff.newText], [buffer, "not saved\n", "changed"]);
  assert.equal(state.asked, 2);

  // In flight, and idle.
  await ctx.notify(session.cancel, { sessionId });
  const begun = new Promise((resolve) => {
    state.first = (update) => update.sessionUpdate === "agent_message_chunk" && resolve();
  });
  const running = prompt(sessionId, "hang");
  await begun;
  state.first = null;
  await ctx.notify(session.cancel, { sessionId });
  assert.equal(await running, "cancelled");
  assert.equal(await prompt(sessionId, "say after"), "end_turn");
  assert.equal(text(), "after");

  const image = [
    { type: "image", mimeType: "image/png", data: PNG },
    { type: "text", text: "image" },
  ];
  assert.equal(await prompt(sessionId, image), "end_turn");
  assert.equal(text(), `image/png ${PNG.length}`);

  assert.equal(await refused(ctx.request(session.prompt, { sessionId: "none", prompt: image })), -32002);
  assert.equal(await refused(ctx.request(session.prompt, { sessionId, prompt: "text" })), -32602);
  assert.equal(await refused(ctx.request(session.new, { cwd: null, mcpServers: [] })), -32602);

  const steered = await ctx.request("_session/steering", {
    sessionId,
    prompt: [{ type: "text", text: "say more" }],
    _meta: { steering: { idleBehavior: "promptRequired" } },
  });
  assert.equal(steered.outcome, "promptRequired");
  await ctx.request(session.close, { sessionId });
  return sessionId;
});

await connected(async (ctx, prompt) => {
  const { sessions } = await ctx.request(session.list, { cwd: workspace });
  assert.ok(sessions.some((one) => one.sessionId === id));
  state.updates = [];
  await ctx.request(session.load, { sessionId: id, cwd: workspace, mcpServers: [] });
  assert.match(text(), /^Good morning/);
  const users = state.updates.filter((one) => one.sessionUpdate === "user_message_chunk");
  assert.equal(users[0].content.text, "think Good morning");
  assert.ok(users.some((one) => one.content.type === "image" && one.content.data === PNG));
  assert.ok(kinds().has("tool_call"));
  assert.equal(await prompt(id, "say loaded"), "end_turn");
  await ctx.request(session.close, { sessionId: id });

  state.updates = [];
  await ctx.request(session.resume, { sessionId: id, cwd: workspace, mcpServers: [] });
  assert.equal(text(), "", "a resumed session is not replayed");
  assert.equal(await prompt(id, "history"), "end_turn");
  assert.match(text(), /^\d\d messages/);
  assert.equal(await refused(ctx.request(session.load, { sessionId: "none", cwd: workspace, mcpServers: [] })), -32002);
});
console.log("all as expected");
