import { expect, test, vi } from "vitest";
import { ChatSession, ConnectionError, RefusedError, TidegateError, ToolConfirmations } from "../src/index.js";
import { type Answer, asked, delta, json, line, problem, scripted, sse, stream, until } from "./support/server.js";

const lost: Answer = (_, response) => void response.destroy();
const EVENTS = "GET /v1/sessions/s/events";
const COMMANDS = "POST /v1/sessions/s/commands";

test("a stream that the server refuses or ends reports why, and what to do", async () => {
  const cases: [Answer, string, typeof ConnectionError | typeof TidegateError][] = [
    [problem(401, "unauthorized"), "`token`", TidegateError],
    [problem(404, "not_found"), "`client.sessions.create()`", TidegateError],
    [problem(403, "origin_not_allowed"), "it is origin_not_allowed", TidegateError],
    [stream([sse({ reason: "deleted" }, 0, "end")]), "the session was deleted", ConnectionError],
    [stream([sse({ reason: "closed" }, 0, "end")]), "no access", ConnectionError],
  ];
  for (const [answer, words, kind] of cases) {
    const { client } = await scripted({ [EVENTS]: [answer] });
    const chat = new ChatSession(client, { sessionId: "s" });
    expect([chat.state.connection, chat.state.connectionError]).toEqual(["connecting", null]);
    await until(chat, () => chat.state.connection === "ended");
    expect(chat.state.connectionError?.message).toContain(words);
    expect(chat.state.connectionError).toBeInstanceOf(kind);
    expect(client.session("s").connectionError).toBe(chat.state.connectionError);
    const late = new ChatSession(client, { sessionId: "s" });
    expect(late.state.connection).toBe("ended");
    chat.destroy();
    late.destroy();
    expect([client.session("s").connection, client.session("s").connectionError]).toEqual(["idle", null]);
  }
});

test.each([
  ["does not answer", lost],
  ["is restarted behind a proxy", problem(502, "http_502")],
  ["is busy", problem(503, "busy")],
])("a connection is lost until it is back, and a message of meanwhile is sent then: the server %s", async (_, gone) => {
  let isGone = false;
  const unless = (answer: Answer): Answer => (...given) => (isGone ? gone : answer)(...given);
  const { client, requests } = await scripted({
    [EVENTS]: [stream([sse(line(0, "turn_start"), 0), sse(delta(1, "Hel"), 1)], true), unless(stream([sse(delta(2, "lo"), 2)]))],
    [COMMANDS]: [unless((request, response) => {
      const { message: { id } } = request.body;
      json({ receipts: [{ id, receipt: "sent" }] })(request, response);
    })],
  }, () => new Promise((done) => setTimeout(done)));
  const chat = new ChatSession(client, { sessionId: "s" });
  const posts = () => requests.filter(({ method }) => method === "POST").length;
  await until(chat, () => chat.state.streaming.text === "Hel");
  isGone = true;
  await until(chat, () => chat.state.connection === "waiting");
  expect(chat.state.connectionError).toBeInstanceOf(Error);
  const id = chat.submit("Meanwhile");
  // As often as a request is repeated without a connection, and more.
  while (posts() < 5) await new Promise((done) => setTimeout(done, 5));
  await new Promise((done) => setTimeout(done, 50));
  expect(chat.state.sent.map(({ message }) => message.text)).toEqual(["Meanwhile"]);
  expect(chat.queued).toEqual([]);
  expect(chat.state.connectionError).toBeInstanceOf(Error);
  isGone = false;
  await until(chat, () => chat.state.connection === "open" && chat.state.streaming.text === "Hello");
  expect(chat.state.connectionError).toBeNull();
  while (posts() < 6) await new Promise((done) => setTimeout(done, 5));
  const bodies = requests.filter(({ method }) => method === "POST").map(({ body }) => body);
  expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1);
  expect(bodies[0]).toEqual({ command: "steer", message: { id, text: "Meanwhile" } });
  chat.destroy();
});

test("a message that cannot be sent is reported, and waits in the front end", async () => {
  const errors: unknown[] = [];
  const onError = (error: unknown) => errors.push(error);
  const cases: [string, Answer, Answer][] = [
    ["the stream is refused meanwhile", problem(401, "unauthorized"), lost],
    ["the message is refused", stream([]), problem(422, "invalid_message")],
  ];
  for (const [name, events, commands] of cases) {
    const { client } = await scripted({ [EVENTS]: [events], [COMMANDS]: [commands] });
    const chat = new ChatSession(client, { sessionId: "s", onError });
    chat.submit("Hello");
    await until(chat, () => chat.queued[0]?.text === "Hello");
    expect(errors.splice(0).length, name).toBe(1);
    chat.destroy();
  }
});

test("a connection that is silent for a minute is made again", async () => {
  const { client, requests } = await scripted({
    [EVENTS]: [stream([sse(line(0, "turn_start"), 0), sse(delta(1, "Hel"), 1)]), stream([sse(delta(2, "lo"), 2)])],
  });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const chat = new ChatSession(client, { sessionId: "s" });
  await until(chat, () => chat.state.streaming.text === "Hel");
  vi.advanceTimersByTime(59_000);
  expect(chat.state.connection).toBe("open");
  vi.advanceTimersByTime(2_000);
  await until(chat, () => chat.state.connection === "waiting");
  expect(chat.state.connectionError?.message).toContain("was cut off");
  await until(chat, () => chat.state.streaming.text === "Hello");
  expect(requests[1]?.headers["last-event-id"]).toBe("1");
  chat.destroy();
  vi.useRealTimers();
});

test("a command that does not reach the server ends a stream that a network has cut, once", async () => {
  for (const [name, answers, posts] of [
    ["the next connection works", [lost, lost, lost, lost, lost, json({ receipts: [] })], 6],
    ["only the stream works", [lost], 10],
  ] as const) {
    const { client, requests } = await scripted({
      [EVENTS]: [stream([sse(line(0, "turn_start"), 0)]), stream([sse(delta(1, "Hello"), 1)])],
      [COMMANDS]: [...answers],
    });
    const chat = new ChatSession(client, { sessionId: "s" });
    await until(chat, () => chat.state.isExecuting);
    const sent = client.session("s").send({ command: "cancel" });
    if (posts === 6) expect(await sent, name).toEqual([]);
    else await expect(sent, name).rejects.toBeInstanceOf(ConnectionError);
    await until(chat, () => chat.state.streaming.text === "Hello");
    const [commands, streams] = ["POST", "GET"].map((one) => requests.filter(({ method }) => method === one));
    expect(commands?.length, name).toBe(posts);
    expect(new Set(commands?.map(({ body }) => body.id)).size, name).toBe(1);
    expect(streams?.map(({ headers }) => headers["last-event-id"]), name).toEqual([undefined, "0"]);
    chat.destroy();
  }
});

test("a command that the server refuses for now leaves an open stream as it is", async () => {
  const { client, requests } = await scripted({ [EVENTS]: [stream([": keep-alive\n\n"])], [COMMANDS]: [problem(503, "busy")] });
  const chat = new ChatSession(client, { sessionId: "s" });
  await until(chat, () => chat.state.connection === "open");
  await expect(client.session("s").send({ command: "cancel" })).rejects.toBeInstanceOf(TidegateError);
  expect(requests.filter(({ method }) => method === "GET").length).toBe(1);
  chat.destroy();
});

test("a connection whose answer has no head for a minute is made again", async () => {
  let isAsked = () => {};
  const asked = new Promise<void>((done) => (isAsked = done));
  const { client, requests } = await scripted({ [EVENTS]: [() => isAsked(), stream([sse(delta(0, "Hello"), 0)])] });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const chat = new ChatSession(client, { sessionId: "s" });
  await asked;
  vi.advanceTimersByTime(61_000);
  await until(chat, () => chat.state.streaming.text === "Hello");
  expect(requests.length).toBe(2);
  chat.destroy();
  vi.useRealTimers();
});

test("a stream that the server ends is closed by the client", async () => {
  let close = () => {};
  const closed = new Promise<void>((done) => (close = done));
  const ends = stream([sse({ reason: "deleted" }, 0, "end")]);
  const { client } = await scripted({
    [EVENTS]: [(request, response) => {
      response.on("close", close);
      ends(request, response);
    }],
  });
  const chat = new ChatSession(client, { sessionId: "s" });
  await until(chat, () => chat.state.connection === "ended");
  await closed;
  chat.destroy();
});

test("without a listener, a command is rejected after a few attempts", async () => {
  const { client, requests } = await scripted({ [COMMANDS]: [lost] });
  await expect(client.session("s").send({ command: "cancel" })).rejects.toBeInstanceOf(ConnectionError);
  expect(requests.length).toBe(5);
});

test("a question that was answered cannot be answered again", async () => {
  const { client, requests } = await scripted({
    [EVENTS]: [stream([sse(line(0, "turn_start"), 0), sse(asked(1, "q"), 1)])],
    [COMMANDS]: [json({ receipts: [] })],
  });
  for (const one of [new ChatSession(client, { sessionId: "s" }), new ToolConfirmations(client, { sessionId: "s" })]) {
    const pending = () => ("toolConfirmation" in one ? one.toolConfirmation : one.pending);
    await until(one, () => pending() !== null);
    const question = pending();
    question?.respond({ approved: true });
    expect(() => question?.respond({ approved: false })).toThrow(RefusedError);
    expect(() => one.answer("q", { decision: "approve" })).toThrow("answered already");
    expect(() => one.answer("other", { decision: "approve" })).toThrow("not open");
    one.destroy();
  }
  await client.session("s").send({ command: "cancel" });
  const answers = requests.filter(({ body }) => body?.command === "answer").map(({ body }) => body.answer);
  expect(answers).toEqual([{ decision: "approve" }, { decision: "approve" }]);
});
