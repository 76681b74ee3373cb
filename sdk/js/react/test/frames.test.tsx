import type { ChatMessage } from "@tidegate/client";
import { act, waitFor } from "@testing-library/react";
import { memo, Profiler } from "react";
import { expect, test, vi } from "vitest";
import { atNextFrame } from "../src/frame.js";
import { useChat, useMessages, useStreamingText } from "../src/index.js";
import { delta, line } from "./support/events.js";
import { probe, renderWith, textOf } from "./support/render.js";
import { Source } from "./support/source.js";

/** Frames that the test makes. */
function frames() {
  let callbacks: FrameRequestCallback[] = [];
  vi.spyOn(globalThis, "requestAnimationFrame").mockImplementation((callback) => callbacks.push(callback));
  vi.spyOn(globalThis, "cancelAnimationFrame").mockImplementation(() => {});
  return () => act(() => callbacks.splice(0).forEach((callback) => callback(0)));
}

test("100,000 deltas take one commit for each frame", () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const frame = frames();
  const source = new Source();
  const { Probe, last } = probe(() => ({ chat: useChat({ sessionId: "s" }), text: useStreamingText({ sessionId: "s" }) }));
  const { Probe: Other } = probe(() => useMessages({ sessionId: "s" }));
  let commits = 0;
  renderWith(source, <Profiler id="all" onRender={() => (commits += 1)}><Probe /><Other /></Profiler>);
  expect(commits).toBe(1);
  for (let seq = 0; seq < 100_000; seq += 1) {
    source.session("s").emit(delta(seq, "word "));
    if (seq % 1_000 === 999) frame();
  }
  expect(commits).toBe(101);
  expect([last().text.text.length, textOf(last().chat.messages[0] as ChatMessage).length]).toEqual([500_000, 500_000]);
  vi.useRealTimers();
});

test("deltas between two frames have one timer and one frame", () => {
  const frame = frames();
  const timers = vi.spyOn(globalThis, "setTimeout");
  const source = new Source();
  const { Probe } = probe(() => useChat({ sessionId: "s" }));
  renderWith(source, <Probe />);
  for (let seq = 0; seq < 3_000; seq += 1) {
    source.session("s").emit(delta(seq, "word "));
    if (seq % 1_000 === 999) frame();
  }
  const late = timers.mock.calls.filter(([, ms]) => ms === 100);
  expect([late.length, vi.mocked(requestAnimationFrame).mock.calls.length]).toEqual([3, 3]);
});

test("a message that did not change is not rendered again", async () => {
  const source = new Source();
  const session = source.session("s");
  const shown: string[] = [];
  const Message = memo(({ message }: { message: ChatMessage }) => {
    shown.push(message.id);
    return null;
  });
  const initialMessages = Array.from({ length: 100 }, (_, index) => ({ id: `old-${index}`, author: "user" as const }));
  function Log() {
    return useMessages({ sessionId: "s", initialMessages }).messages.map((one) => <Message key={one.id} message={one} />);
  }
  renderWith(source, <Log />);
  expect(shown.length).toBe(100);
  session.emit(delta(0, "Hel"));
  await waitFor(() => expect(shown.length).toBe(101));
  session.emit(delta(1, "lo"));
  await waitFor(() => expect(shown.length).toBe(102));
  expect(shown[100]).toBe(shown[101]);
});

test.each([["reported", true], ["written to the console", false]])("a callback that fails stops no other of its frame, and is %s", (_, hasReports) => {
  const frame = frames();
  const reported = vi.fn();
  vi.stubGlobal("reportError", hasReports ? reported : undefined);
  const written = vi.spyOn(console, "error").mockImplementation(() => {});
  const error = new Error("a failing callback");
  let calls = 0;
  atNextFrame(() => {
    throw error;
  });
  atNextFrame(() => (calls += 1));
  frame();
  expect(calls).toBe(1);
  expect((hasReports ? reported : written).mock.calls).toEqual([[error]]);
  atNextFrame(() => (calls += 1));
  frame();
  expect(calls).toBe(2);
  vi.unstubAllGlobals();
});

test("an action is rendered in its own task", () => {
  frames();
  const { Probe, last, renders } = probe(() => useChat({ sessionId: "s" }));
  renderWith(new Source(), <Probe />);
  act(() => last().setMode("queue"));
  expect([last().mode, renders()]).toEqual(["queue", 2]);
});

test("a page that is hidden, and has no frames, continues", async () => {
  frames();
  const source = new Source();
  const { Probe, last } = probe(() => useChat({ sessionId: "s" }));
  renderWith(source, <Probe />);
  source.session("s").emit(line(0, "turn_start"));
  await waitFor(() => expect(last().isExecuting).toBe(true));
});
