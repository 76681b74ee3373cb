import { TidegateClient } from "@tidegate/client";
import { act, waitFor } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { useChat, useConnection, useMessages } from "../src/index.js";
import { probe, renderWith, textOf } from "./support/render.js";
import { Source } from "./support/source.js";
import { Tidegate } from "./support/tidegate.js";

const servers: Tidegate[] = [];
async function started(...given: Parameters<typeof Tidegate.start>): Promise<Tidegate> {
  const server = await Tidegate.start(...given);
  servers.push(server);
  return server;
}
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

const TOKEN = "0123456789abcdef0123456789abcdef";
const USERS = `[[serve.token]]\nname = "anna"\nvalue = "env:ANNA_TOKEN"\n`;

/** The connection in the state of a chat and in that of a log. */
function watched(client: TidegateClient | Source, sessionId: string) {
  const shown = probe(() => ({ chat: useChat({ sessionId }), log: useMessages({ sessionId }), alone: useConnection({ sessionId }) }));
  const rendered = renderWith(client, <shown.Probe />, true);
  return { ...shown, ...rendered };
}

test("a wrong token and a session that does not exist are errors that say what to do", async () => {
  process.env["ANNA_TOKEN"] = TOKEN;
  const { baseUrl } = await started([], { settings: USERS });
  for (const [token, id, code, words] of [
    ["wrong", "s", "unauthorized", "`token`"],
    [undefined, "s", "unauthorized", "`token`"],
    [TOKEN, "no-such-session", "not_found", "`client.sessions.create()`"],
  ] as const) {
    const { last, unmount } = watched(new TidegateClient({ baseUrl, ...(token !== undefined && { token }) }), id);
    await waitFor(() => expect(last().chat.connection).toBe("ended"));
    expect(last().chat.connectionError).toMatchObject({ code });
    expect(last().chat.connectionError?.message).toContain(words);
    expect(last().alone).toEqual({ connection: "ended", connectionError: last().chat.connectionError });
    unmount();
  }
});

test("a server that is gone is reported, and what is written meanwhile is sent when it is back", { timeout: 60_000 }, async () => {
  const answers = [[{ text: "Before." }], [{ text: "After." }]];
  const first = await started(answers);
  const port = Number(new URL(first.baseUrl).port);
  const client = new TidegateClient({ baseUrl: first.baseUrl });
  const { id } = await client.sessions.create();
  const { last } = watched(client, id);
  act(() => void last().chat.submit("One"));
  await waitFor(() => expect(last().chat.messages.map(textOf)).toEqual(["One", "Before."]));
  await waitFor(() => expect(last().chat.isExecuting).toBe(false));
  await first.kill();
  await waitFor(() => expect(last().chat.connection).toBe("waiting"), { timeout: 5_000 });
  expect(last().chat.connectionError?.message).toMatch(/has closed the connection|was cut off|cannot reach/);
  act(() => void last().chat.submit("Two"));
  // Longer than a command is repeated without a connection.
  await new Promise((done) => setTimeout(done, 5_000));
  expect([last().chat.sent.length, last().chat.queued.length, last().alone.connectionError]).toEqual([1, 0, expect.any(Error)]);
  await first.start({ port });
  await waitFor(() => expect(last().chat.messages.map(textOf)).toEqual(expect.arrayContaining(["One", "Two"])), { timeout: 35_000 });
  expect(last().chat.connectionError).toBeNull();
});

test("hooks show the connection of a session of one's own", async () => {
  const source = new Source();
  const { last } = watched(source, "s");
  expect(last().alone).toEqual({ connection: "idle", connectionError: null });
  const why = new Error("no route");
  act(() => source.session("s").become("waiting", why));
  await waitFor(() => expect(last().chat.connection).toBe("waiting"));
  expect([last().chat.connectionError, last().alone.connectionError]).toEqual([why, why]);
  act(() => source.session("s").become("open"));
  await waitFor(() => expect(last().chat).toMatchObject({ connection: "open", connectionError: null }));
});
