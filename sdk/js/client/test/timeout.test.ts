import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, test } from "vitest";
import { ChatSession, ConnectionError, TidegateClient, TimeoutError } from "../src/index.js";
import { type Answer, delta, json, line, scripted, sse, stream, until } from "./support/server.js";

const EVENTS = "GET /v1/sessions/s/events";
const COMMANDS = "POST /v1/sessions/s/commands";
const never: Answer = () => undefined;
const half: Answer = (_, response) => {
  response.writeHead(200, { "Content-Type": "application/json" });
  response.write('{"receipts":');
};
const receipt: Answer = (request, response) =>
  json({ receipts: request.body.message ? [{ id: request.body.message.id, receipt: "sent" }] : [] })(request, response);
const wait = () => Promise.resolve();

test.each([
  ["no answer", never, undefined],
  ["half an answer", half, undefined],
  ["a fetch that ignores the signal", never, ((url, init) => fetch(url, { ...init, signal: null })) as typeof fetch],
])("a request has a limit of time, and the error says that it may have arrived: %s", async (_, answer, own) => {
  const options = { timeoutMs: 50, ...(own ? { fetch: own } : {}) };
  const script = { [COMMANDS]: [answer], "POST /v1/sessions": [answer], "GET /v1/sessions/s/export?format=md": [answer] };
  const { client, requests } = await scripted(script, wait, options);
  for (const send of [
    () => client.session("s").send({ command: "cancel" }),
    () => client.sessions.create(),
    () => client.sessions.export("s"),
  ]) {
    const error = await send().then(() => undefined, (reason: unknown) => reason);
    expect(error).toBeInstanceOf(TimeoutError);
    expect(error).toBeInstanceOf(ConnectionError);
    expect((error as TimeoutError).mayHaveArrived).toBe(true);
    expect((error as TimeoutError).message).toContain("has not answered within 0.05 s");
  }
  expect(requests.length).toBe(3);
});

test("a command whose time is over is sent again over the next connection, under its id", async () => {
  const { client, requests } = await scripted(
    { [EVENTS]: [stream([sse(line(0, "turn_start"), 0), sse(delta(1, "Hel"), 1)])], [COMMANDS]: [never, receipt] },
    wait,
    { timeoutMs: 100 },
  );
  const chat = new ChatSession(client, { sessionId: "s" });
  await until(chat, () => chat.state.streaming.text === "Hel");
  const receipts = await client.session("s").send({ command: "steer", message: { id: "m-1", text: "Look" } });
  expect(receipts).toEqual([{ id: "m-1", receipt: "sent" }]);
  const posts = requests.filter(({ method }) => method === "POST");
  expect(posts.map(({ body }) => body.message.id)).toEqual(["m-1", "m-1"]);
  chat.destroy();
});

test("an error says where a request cannot have arrived", async () => {
  const free = createServer().listen(0, "127.0.0.1");
  await once(free, "listening");
  const { port } = free.address() as AddressInfo;
  await new Promise((done) => free.close(done));
  const gone = new TidegateClient({ baseUrl: `http://127.0.0.1:${port}`, wait });
  await expect(gone.sessions.list()).rejects.toMatchObject({ name: "ConnectionError", mayHaveArrived: false });
  const { client } = await scripted({ "GET /v1/sessions": [(_, response) => void response.destroy()] }, wait);
  await expect(client.sessions.list()).rejects.toMatchObject({ name: "ConnectionError", mayHaveArrived: true });
});

test("no limit of time is `Infinity`, and a long one does not fire at once", async () => {
  for (const timeoutMs of [Infinity, 1e12]) {
    const slow: Answer = (...given) => void setTimeout(() => json({ sessions: [] })(...given), 50);
    const { client } = await scripted({ "GET /v1/sessions": [slow] }, wait, { timeoutMs });
    expect(await client.sessions.list()).toEqual([]);
  }
});
