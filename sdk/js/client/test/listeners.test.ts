import { expect, test, vi } from "vitest";
import { ChatSession, EventError, type StreamItem } from "../src/index.js";
import { delta, line, scripted, sse, stream, until } from "./support/server.js";

const LINES = [line(0, "turn_start"), delta(1, "Hel"), delta(2, "lo")];
const PIECES = LINES.map((one, id) => sse(one, id));
/** All events in one piece, as a listener gets them in one task. */
const one = { "GET /v1/sessions/s/events": [stream([PIECES.join("")])] };

const seqs = (items: readonly StreamItem[]) => items.map((item) => (item.kind === "event" ? item.event.seq : item.kind));

test("who unsubscribes the last listener in its callback takes nothing from the next one", async () => {
  for (const isInCallback of [false, true]) {
    const { client, requests } = await scripted(one);
    const session = client.session("s");
    const [first, second]: StreamItem[][] = [[], []];
    let restart: () => void = () => {};
    const complete = new Promise<void>((done) => {
      restart = () => {
        session.onItem((item) => {
          second?.push(item);
          if (second?.length === 3) done();
        });
      };
    });
    const stopped = new Promise<void>((done) => {
      const undo = session.onItem((item) => {
        first?.push(item);
        undo();
        if (isInCallback) restart();
        done();
      });
    });
    await stopped;
    if (!isInCallback) restart();
    await complete;
    expect([seqs(first ?? []), seqs(second ?? [])], `in the callback: ${isInCallback}`).toEqual([[0], [0, 1, 2]]);
    expect(requests.map((request) => request.headers["last-event-id"])).toEqual([undefined, undefined]);
    expect(session.connection).toBe("open");
  }
});

test("a function that listens twice is two listeners", async () => {
  const { client } = await scripted(one);
  const session = client.session("s");
  let calls = 0;
  const listener = () => void (calls += 1);
  const undo = session.onItem(listener);
  const last = new Promise<void>((done) => void session.onItem((item) => item.kind === "event" && item.event.seq === 2 && done()));
  session.onItem(listener);
  undo();
  undo();
  await last;
  await Promise.resolve();
  expect(calls).toBe(3);
});

test("a listener that throws stops neither the stream nor the others", async () => {
  const { client } = await scripted({ "GET /v1/sessions/s/events": [stream(PIECES.slice(0, 1), true), stream(PIECES.slice(1))] });
  const session = client.session("s");
  const thrown: unknown[] = [];
  const fail = (what: string) => () => {
    throw new Error(what);
  };
  const written = vi.spyOn(console, "error").mockImplementation(() => {});
  session.onError(fail("of errors"));
  session.onError((error) => thrown.push(error));
  session.onConnection(fail("of the connection"));
  const undo = session.onItem(fail("of items"));
  const chat = new ChatSession(client, { sessionId: "s", onError: (error) => thrown.push(error), onEvent: fail("of events") });
  chat.onStateChange(fail("of the state"));
  await until(chat, () => chat.state.streaming.text === "Hello");
  undo();
  chat.destroy();
  const messages = (errors: unknown[]) => [...new Set(errors.map((error) => (error as Error).message.split(":")[0]))];
  expect(messages(thrown)).toEqual(expect.arrayContaining(["of the connection", "of items", "of events", "of the state"]));
  expect(messages(written.mock.calls.flat())).toEqual(["of errors"]);
  written.mockRestore();
});

test("an event that cannot be read is reported and left out", async () => {
  const unreadable: [string, string][] = [
    ["a delta without text", sse(line(1, "cognition_out_delta"), 1)],
    ["a delta with null", sse({ ...line(1, "cognition_out_delta"), payload: null }, 1)],
    ["a status that is a number", sse(line(1, "turn_finish", { status: 5 }), 1)],
    ["no JSON", "id: 1\ndata: {\n\n"],
    ["null", sse(null, 1)],
    ["a snapshot of another version", sse({ omitted: 1, chat: { next_seq: "1" } }, 1, "snapshot")],
    ["a line of a child", sse({ child: { id: "c", agent: "a" }, line: { ...line(0, "turn_finish", { status: 5 }), thread_id: "c" } }, 0, "child")],
  ];
  // Events that do not reach the listeners for items.
  const unshown = ["no JSON", "null", "a snapshot of another version"];
  for (const [name, piece] of unreadable) {
    const { client, requests } = await scripted({ "GET /v1/sessions/s/events": [stream([sse(delta(0, "Hel"), 0), piece, sse(delta(2, "lo"), 2)])] });
    const [errors, own]: unknown[][] = [[], []];
    client.session("s").onError((error) => errors?.push(error));
    const chat = new ChatSession(client, { sessionId: "s", onError: (error) => own?.push(error) });
    await until(chat, () => chat.state.streaming.text === "Hello");
    expect(errors, name).toEqual([expect.any(EventError)]);
    expect(own, name).toEqual(unshown.includes(name) ? [] : [expect.any(EventError)]);
    expect(String(errors?.[0]), name).toContain("was left out");
    expect(requests.length).toBe(1);
    chat.destroy();
  }
});
