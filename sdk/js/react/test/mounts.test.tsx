import { TidegateClient } from "@tidegate/client";
import { act, waitFor } from "@testing-library/react";
import { type ReactElement, startTransition, Suspense, useState } from "react";
import { beforeEach, expect, test, vi } from "vitest";
import { useChat, useEvents, useMessages, useMessageSteering, useStreamingText, useToolConfirmations } from "../src/index.js";
import { delta, line } from "./support/events.js";
import { alive, live } from "./support/live.js";
import { probe, renderWith, textOf } from "./support/render.js";
import { Source } from "./support/source.js";

vi.mock("@tidegate/client", async (original) => {
  const { counted } = await import("./support/live.js");
  const client = await original<typeof import("@tidegate/client")>();
  const { ChatSession, MessageLog, MessageSteering, StreamingText, ToolConfirmations } = client;
  return {
    ...client,
    ChatSession: counted(ChatSession),
    MessageLog: counted(MessageLog),
    MessageSteering: counted(MessageSteering),
    StreamingText: counted(StreamingText),
    ToolConfirmations: counted(ToolConfirmations),
  };
});

const SESSION = { sessionId: "s" };
beforeEach(() => live.clear());

function useAll() {
  const [chat, log] = [useChat(SESSION), useMessages(SESSION)];
  return { chat, log, all: [useToolConfirmations(SESSION), useMessageSteering(SESSION), useStreamingText(SESSION), useEvents(SESSION)] };
}

test("strict mode starts each hook once, and leaves none", async () => {
  const source = new Source();
  const session = source.session("s");
  const { Probe, last } = probe(useAll);
  const { unmount } = renderWith(source, <Probe />, true);
  expect([session.starts, session.listeners.size]).toEqual([6, 6]);
  session.emit(line(0, "turn_start"), delta(1, "Hi"));
  await waitFor(() => expect(last().log.messages.map(textOf)).toEqual(["Hi"]));
  unmount();
  await waitFor(() => expect(session.listeners.size).toBe(0));
  expect(await alive()).toBe(0);
});

test("strict mode has one connection, which ends with the last component", async () => {
  const requests: (AbortSignal | null | undefined)[] = [];
  const fetch = (_: unknown, init?: RequestInit) => {
    requests.push(init?.signal);
    return Promise.resolve(new Response(new ReadableStream()));
  };
  const client = new TidegateClient({ fetch });
  const { Probe } = probe(useAll);
  const { unmount } = renderWith(client, <Probe />, true);
  await waitFor(() => expect(client.session("s").connection).toBe("open"));
  expect(requests.length).toBe(1);
  unmount();
  await waitFor(() => expect(client.session("s").connection).toBe("idle"));
  expect(requests.map((signal) => signal?.aborted)).toEqual([true]);
});

test("a render that is thrown away starts nothing and leaves nothing", async () => {
  const source = new Source();
  const never = new Promise<void>(() => {});
  function Suspended(): ReactElement {
    useAll();
    throw never;
  }
  const { Probe: Switch, last } = probe(() => useState(false));
  function Page() {
    Switch();
    return last()[0] ? <Suspense fallback="waits"><Suspended /></Suspense> : <>nothing</>;
  }
  const { findByText, unmount } = renderWith(source, <Page />);
  act(() => startTransition(() => last()[1](true)));
  await findByText("waits");
  expect(source.session("s").starts).toBe(0);
  unmount();
  expect(await alive()).toBe(0);
});

test("a component that is mounted again follows its session again", async () => {
  const source = new Source();
  const { Probe, last } = probe(useAll);
  const first = renderWith(source, <Probe />);
  source.session("s").emit(delta(0, "Hi"));
  await waitFor(() => expect(last().chat.messages.map(textOf)).toEqual(["Hi"]));
  first.unmount();
  const submit = last().chat.submit;
  renderWith(source, <Probe />);
  expect(last().chat.messages).toEqual([]);
  act(() => void submit("An action of a component that is gone"));
  expect(source.session("s").commands.length).toBe(1);
  source.session("s").emit(delta(0, "Hi"));
  await waitFor(() => expect(last().chat.messages.map(textOf)).toEqual(["Hi"]));
});
