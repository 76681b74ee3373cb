import { expect, test } from "vitest";
import { ChatSession, ConnectionError, MessageSteering, type StreamItem, StreamingText, TidegateClient, TidegateError, ToolConfirmations } from "../src/index.js";
import { type Answer, asked, delta, json, line, problem, scripted, sse, stream, until } from "./support/server.js";

const text = (chat: ChatSession) => chat.messages.map((one) => one.blocks.map((block) => block.text).join("")).join("|");

test("a stream that is cut in mid-event continues where it was", async () => {
  const whole = sse(delta(2, "lo"), 2);
  const { client, requests } = await scripted({
    "GET /v1/sessions/s/events": [
      stream([": keep-alive\n\n", sse(line(0, "turn_start"), 0), sse(delta(1, "Hel"), 1), whole.slice(0, 40)], true),
      stream([sse(delta(1, "Hel"), 1), whole.slice(0, 9), whole.slice(9), sse({ reason: "closed" }, 2, "end")]),
    ],
  });
  const chat = new ChatSession(client, { sessionId: "s" });
  const errors: unknown[] = [];
  client.session("s").onError((error) => errors.push(error));
  await until(chat, () => text(chat) === "Hello");
  expect(chat.chatMode).toBe("streaming");
  expect(requests.map((request) => request.headers["last-event-id"])).toEqual([undefined, "1"]);
  expect(requests[0]?.headers.authorization).toBe("Bearer secret");
  chat.destroy();
});

test("a snapshot takes the place of events, and a later listener gets one", async () => {
  const before = new ChatSession();
  before.processEvent(line(0, "turn_start"));
  before.processEvent(delta(1, "Hel"));
  const snapshot = { omitted: 2, next_seq: 2, chat: before.save() };
  const { client } = await scripted({
    "GET /v1/sessions/s/events": [stream([sse(snapshot, 1, "snapshot"), sse(delta(2, "lo"), 2)])],
  });
  const chat = new ChatSession(client, { sessionId: "s" });
  await until(chat, () => text(chat) === "Hello");
  const late = new ChatSession(client, { sessionId: "s" });
  expect(text(late)).toBe("Hello");
  expect(late.state.isExecuting).toBe(true);
  chat.destroy();
  late.destroy();
});

test("a turn that the end of the server has cut off is interrupted until it continues", async () => {
  const before = new ChatSession();
  before.processEvent(line(0, "turn_start"));
  before.processEvent(delta(1, "Hel"));
  expect(before.state.isInterrupted).toBe(false);
  // As the server closes what the process before has left open.
  before.processEvent(line(2, "thread_resumed", { resumed_by: "continue", provider: "p", model: "m" }));
  expect(before.state.isInterrupted).toBe(true);
  const snapshot = { omitted: 3, next_seq: 3, chat: before.save() };
  const { client } = await scripted({ "GET /v1/sessions/s/events": [stream([sse(snapshot, 2, "snapshot")])] });
  const chat = new ChatSession(client, { sessionId: "s" });
  await until(chat, () => chat.state.isInterrupted);
  expect(chat.state.isExecuting).toBe(false);
  chat.processEvent({ ...line(3, "turn_start"), turn: 2 });
  expect(chat.state.isInterrupted).toBe(false);
  chat.destroy();
});

test("events of children are taken once, and end the wait for nothing else", async () => {
  const child = (seq: number, words: string) =>
    sse({ child: { id: "c", agent: "helper" }, line: { ...delta(seq, words), thread_id: "c" } }, 0, "child");
  const { client } = await scripted({
    "GET /v1/sessions/s/events": [
      stream([sse(line(0, "turn_start"), 0), child(0, "wo")], true),
      stream([child(0, "wo"), child(1, "rk")]),
    ],
  });
  const chat = new ChatSession(client, { sessionId: "s" });
  await until(chat, () => chat.state.children[0]?.messages[0]?.blocks[0]?.text === "work");
  expect(chat.state.children[0]?.thread).toEqual({ id: "c", agent: "helper" });
  expect(chat.messages).toEqual([]);
  chat.destroy();
});

test("a snapshot of a child takes the place of its events, for every class", async () => {
  const saved = new ChatSession();
  saved.processEvent({ ...delta(3, "wo"), thread_id: "c" });
  const child = { id: "c", agent: "helper" };
  const snapshot = { omitted: 4, next_seq: 4, chat: saved.save() };
  const line = { ...delta(4, "rk"), thread_id: "c" };
  const pieces = [sse({ child, snapshot }, 0, "child"), sse({ child, line }, 0, "child")];
  const { client } = await scripted({ "GET /v1/sessions/s/events": [stream(pieces)] });
  const chat = new ChatSession(client, { sessionId: "s" });
  const others = [new StreamingText(client, { sessionId: "s" }), new MessageSteering(client, { sessionId: "s" })];
  await until(chat, () => chat.state.children[0]?.messages[0]?.blocks[0]?.text === "work");
  for (const one of [chat, ...others]) one.destroy();
});

test("a command without messages has an id, and an opaque id of the stream goes back as it is", async () => {
  const opaque = `id: g-1.0\ndata: ${JSON.stringify(line(0, "turn_start"))}\n\n`;
  const { client, requests } = await scripted({
    "GET /v1/sessions/s/events": [stream([opaque], true), stream([sse({ reason: "closed" }, 0, "end")])],
    "POST /v1/sessions/s/commands": [json({ receipts: [] })],
  });
  const session = client.session("s");
  await session.send({ command: "cancel" });
  expect(requests[0]?.body).toEqual({ command: "cancel", id: expect.stringMatching(/^.{36}$/) });
  const ended = new Promise<void>((done) => void session.onItem((item) => item.kind === "end" && done()));
  await ended;
  expect(requests.at(-1)?.headers["last-event-id"]).toBe("g-1.0");
});

test("a command whose answer was lost is sent again as it was", async () => {
  const lost: Answer = (_, response) => void response.destroy();
  const { client, requests } = await scripted({
    "GET /v1/sessions/s/events": [stream([])],
    "POST /v1/sessions/s/commands": [
      lost,
      (request, response) => {
        const { id } = request.body.messages[0];
        json({ receipts: [{ id, receipt: "delivered", turn: 1, step: 1, seq: 4 }] })(request, response);
      },
    ],
  });
  const chat = new ChatSession(client, { sessionId: "s" });
  const id = chat.submit("Hello");
  expect(chat.lastSubmitted).toBe("Hello");
  await until(chat, () => chat.receipt(id)?.receipt === "delivered");
  const [first, second] = requests.filter((request) => request.method === "POST");
  expect(first?.body).toEqual({ command: "prompt", messages: [{ id, text: "Hello" }] });
  expect(second?.body).toEqual(first?.body);
  chat.destroy();
});

test("an answer that is refused opens the question again, and a policy answers without the person", async () => {
  const { client, requests } = await scripted({
    "GET /v1/sessions/s/events": [stream([sse(line(0, "turn_start"), 0), sse(asked(1, "q"), 1)])],
    "POST /v1/sessions/s/commands": [problem(409, "no_such_question"), json({ receipts: [] })],
  });
  const errors: unknown[] = [];
  const chat = new ChatSession(client, { sessionId: "s", onError: (error) => errors.push(error) });
  await until(chat, () => chat.chatMode === "confirming_tool");
  chat.respondToConfirmation({ approved: false, reason: "no" });
  expect(chat.chatMode).toBe("streaming");
  await until(chat, () => chat.toolConfirmation?.request.error === "it is no_such_question");
  expect(errors[0]).toBeInstanceOf(TidegateError);
  const questions = new ToolConfirmations(client, { sessionId: "s", policy: () => ({ action: "approve" }) });
  await until(questions, () => questions.state.questions[0]?.answer?.decision === "approve");
  expect(questions.pending).toBeNull();
  expect(requests.at(-1)?.body ?? {}).toBeDefined();
  chat.destroy();
  questions.destroy();
});

test("a message that cannot be sent is in the queue again", async () => {
  const { client } = await scripted({
    "GET /v1/sessions/s/events": [stream([])],
    "POST /v1/sessions/s/commands": [problem(413, "too_large")],
  });
  const chat = new ChatSession(client, { sessionId: "s" });
  chat.submit("Too much");
  await until(chat, () => chat.queued[0]?.text === "Too much");
  expect(chat.lastSubmitted).toBeNull();
  chat.destroy();
});

test("a stream that is refused ends, and says why", async () => {
  const { client, requests } = await scripted({ "GET /v1/sessions/s/events": [problem(401, "unauthorized")] });
  const session = client.session("s");
  const ended = new Promise<unknown>((done) => session.onError(done));
  const undo = session.onItem(() => {});
  const error = (await ended) as TidegateError;
  expect([error.status, error.code, error.detail]).toEqual([401, "unauthorized", "it is unauthorized"]);
  expect(requests).toHaveLength(1);
  undo();
});

test("sessions are created once, listed, shown, forked, exported, shared and deleted", async () => {
  const summary = { id: "s", agent: "a", model: "m", owner: "ada", state: "idle", created_ms: 0, updated_ms: 0, turns: 0, users: [] };
  const none: Answer = (_, response) => void response.writeHead(204).end();
  const { client, requests } = await scripted({
    "POST /v1/sessions": [problem(503, "busy"), json(summary, 201)],
    "GET /v1/sessions": [json({ sessions: [summary] })],
    "GET /v1/sessions/s": [json(summary)],
    "POST /v1/sessions/s/fork": [json({ ...summary, id: "f" }, 201)],
    "GET /v1/sessions/s/export?format=md": [(_, response) => void response.end("# Title")],
    "PUT /v1/sessions/s/users/grace%20h": [none],
    "DELETE /v1/sessions/s/users/grace%20h": [none],
    "DELETE /v1/sessions/s": [none],
  });
  const { sessions } = client;
  expect(await sessions.create({ agent: "a" })).toEqual(summary);
  const [first, second] = requests;
  expect(first?.body).toEqual(second?.body);
  expect(await sessions.list()).toEqual([summary]);
  expect((await sessions.get("s")).owner).toBe("ada");
  expect((await sessions.fork("s", { turn: 2 })).id).toBe("f");
  expect(await sessions.export("s")).toBe("# Title");
  await sessions.share("s", "grace h");
  await sessions.unshare("s", "grace h");
  await sessions.delete("s");
  await expect(sessions.get("other")).rejects.toMatchObject({ status: 404, code: "not_found" });
});

test("a server that does not answer is an error of the connection", async () => {
  const client = new TidegateClient({ baseUrl: "http://127.0.0.1:1", wait: () => Promise.resolve() });
  await expect(client.sessions.list()).rejects.toBeInstanceOf(ConnectionError);
});

test("a session gives raw events, and questions with their answers", async () => {
  const { client, requests } = await scripted({
    "GET /v1/sessions/s/events": [stream([sse(line(0, "turn_start"), 0), sse(asked(1, "q"), 1)])],
    "POST /v1/sessions/s/commands": [json({ receipts: [] })],
  });
  const session = client.session("s");
  const items: StreamItem[] = [];
  const types: string[] = [];
  session.onItem((item) => items.push(item));
  session.onEvent((event) => types.push(event.type));
  const answered = new Promise<string>((done) => {
    session.onToolConfirmation((request, respond) => void respond({ approved: true }).then(() => done(request.name)));
  });
  expect(await answered).toBe("shell");
  expect(types).toEqual(["turn_start", "tool_confirmation_requested"]);
  expect(items).toHaveLength(2);
  expect(requests.at(-1)?.body).toEqual({ command: "answer", question: "q", call: "c", answer: { decision: "approve" } });
});
