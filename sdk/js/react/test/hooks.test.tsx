import type { StreamEvent } from "@tidegate/client";
import { act, fireEvent, screen, waitFor } from "@testing-library/react";
import { useState } from "react";
import { expect, test } from "vitest";
import { useChat, useEvents, useMessages, useMessageSteering, useStreamingText, useToolConfirmations } from "../src/index.js";
import { asked, delta, line } from "./support/events.js";
import { probe, renderWith, textOf } from "./support/render.js";
import { Source } from "./support/source.js";

const SESSION = { sessionId: "s" };

test("a chat shows what happens in its session, and does what is asked for", async () => {
  const source = new Source();
  const session = source.session("s");
  const { Probe, last } = probe(() => useChat(SESSION));
  renderWith(source, <Probe />);
  expect(last().chatMode).toBe("idle");
  act(() => void last().submit("Hello"));
  expect([last().lastSubmitted, session.commands[0]?.command]).toEqual(["Hello", "prompt"]);
  session.emit(line(0, "turn_start"), delta(1, "Hel"), delta(2, "lo"));
  await waitFor(() => expect(last().messages.map(textOf)).toEqual(["Hello"]));
  expect([last().chatMode, last().streaming.text]).toEqual(["streaming", "Hello"]);
  session.emit(asked(3, "q"));
  await waitFor(() => expect(last().chatMode).toBe("confirming_tool"));
  act(() => last().respondToConfirmation({ approved: true }));
  expect(last().toolConfirmation).toBeNull();
  expect(session.commands[1]).toMatchObject({ command: "answer", question: "q", answer: { decision: "approve" } });
  act(() => last().clearMessages());
  expect(last().messages).toEqual([]);
});

test("each primitive has a hook of its own", async () => {
  const source = new Source();
  const session = source.session("s");
  const { Probe, last } = probe(() => ({
    log: useMessages(SESSION),
    questions: useToolConfirmations(SESSION),
    steering: useMessageSteering({ ...SESSION, mode: "queue" }),
    text: useStreamingText(SESSION),
  }));
  renderWith(source, <Probe />);
  session.emit(line(0, "turn_start"), delta(1, "Hi"), asked(2, "q"));
  await waitFor(() => expect(last().text).toMatchObject({ text: "Hi", active: true }));
  expect([last().log.messages.map(textOf), last().questions.pending?.request.name]).toEqual([["Hi"], "shell"]);
  act(() => void last().steering.submit("Later"));
  expect(last().steering.queued.map((message) => message.text)).toEqual(["Later"]);
  act(() => last().steering.setMode("steer"));
  expect(last().steering.mode).toBe("steer");
  act(() => last().questions.respond({ approved: false, reason: "no" }));
  expect(last().questions.pending).toBeNull();
  expect(session.commands).toMatchObject([{ command: "answer", answer: { decision: "deny", reason: "no" } }]);
  act(() => last().log.clear());
  expect(last().log.messages).toEqual([]);
});

test("functions stay the same, and call the latest options", async () => {
  const source = new Source();
  const session = source.session("s");
  const seen = new Set<unknown>();
  function Chat() {
    const [allowed, allow] = useState(false);
    const { submit, chatMode } = useChat({
      ...SESSION,
      confirmationPolicy: () => ({ action: allowed ? "approve" : "prompt" }),
      deriveMode: ({ isExecuting }) => `${isExecuting ? "busy" : "ready"}, ${allowed ? "all allowed" : "asks"}`,
    });
    seen.add(submit);
    return <button onClick={() => allow(true)}>{chatMode}</button>;
  }
  renderWith(source, <Chat />);
  expect(screen.getByRole("button").textContent).toBe("ready, asks");
  fireEvent.click(screen.getByRole("button"));
  expect(screen.getByRole("button").textContent).toBe("ready, all allowed");
  session.emit(line(0, "turn_start"), asked(1, "q"));
  await screen.findByText("busy, all allowed");
  expect(session.commands).toMatchObject([{ command: "answer", answer: { decision: "approve" } }]);
  expect(seen.size).toBe(1);
});

test("another session has another chat", async () => {
  const source = new Source();
  const { Probe, last } = probe(() => {
    const [sessionId, choose] = useState("s");
    return { ...useMessages({ sessionId }), choose };
  });
  renderWith(source, <Probe />);
  source.session("s").emit(delta(0, "first"));
  await waitFor(() => expect(last().messages.map(textOf)).toEqual(["first"]));
  act(() => last().choose("t"));
  expect(last().messages).toEqual([]);
  await waitFor(() => expect(source.session("s").listeners.size).toBe(0));
  source.session("t").emit(delta(0, "second"));
  await waitFor(() => expect(last().messages.map(textOf)).toEqual(["second"]));
});

test("a parent drives hooks with one subscription", async () => {
  const source = new Source();
  const events: StreamEvent[] = [];
  const { Probe, last } = probe(() => {
    const log = useMessages({ subscribe: false });
    const text = useStreamingText({ subscribe: false });
    const onEvent = (event: StreamEvent) => {
      events.push(event);
      log.processEvent(event);
      text.processEvent(event);
    };
    return { log, text, ...useEvents({ ...SESSION, onEvent }) };
  });
  renderWith(source, <Probe />);
  source.session("s").emit(line(0, "turn_start"), delta(1, "Hi"));
  await waitFor(() => expect(last().text.text).toBe("Hi"));
  expect([last().log.messages.map(textOf), last().event, events.length]).toEqual([["Hi"], null, 2]);
  expect(source.session("s").listeners.size).toBe(1);
});

test("what cannot be done throws", () => {
  const { Probe, last } = probe(() => useChat());
  renderWith(new Source(), <Probe />);
  expect(() => last().submit("Hello")).toThrow("the hook has no `sessionId`");
  expect(() => last().edit("no-such", "text")).toThrow("no-such");
});
