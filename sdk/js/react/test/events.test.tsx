import type { StreamEvent } from "@tidegate/client";
import { act, waitFor } from "@testing-library/react";
import { useEffect, useState } from "react";
import { expect, test } from "vitest";
import { useEvents, type UseEventsOptions } from "../src/index.js";
import { delta, line } from "./support/events.js";
import { probe, renderWith } from "./support/render.js";
import { Source } from "./support/source.js";

/** What a component takes from `event` in an effect. */
function taking(options: Omit<UseEventsOptions, "sessionId"> = {}) {
  const taken: StreamEvent[] = [];
  const { Probe, renders } = probe(() => {
    const { event } = useEvents({ sessionId: "s", ...options });
    useEffect(() => {
      if (event) taken.push(event);
    }, [event]);
  });
  return { taken, Probe, renders };
}

test("each event is rendered once, in order", async () => {
  const source = new Source();
  const { taken, Probe } = taking();
  renderWith(source, <Probe />, true);
  const events = Array.from({ length: 1_000 }, (_, seq) => line(seq, "notice", { message: String(seq) }));
  source.session("s").emit(...events);
  await waitFor(() => expect(taken.length).toBe(1_000));
  expect(taken).toEqual(events);
});

test("deltas that wait are joined, and nothing of them is lost", async () => {
  const source = new Source();
  const { taken, Probe, renders } = taking();
  renderWith(source, <Probe />);
  const reasoning = [1, 2].map((seq) => line(seq, "cognition_reasoning_delta", { text: "hm " }));
  const second = { ...delta(100_003, "next"), attempt: 2 };
  source.session("s").emit(line(0, "turn_start"), ...reasoning);
  for (let seq = 3; seq < 100_003; seq += 1) source.session("s").emit(delta(seq, "a"));
  source.session("s").emit(second, line(100_004, "turn_finish", { status: "completed" }));
  await waitFor(() => expect(taken.at(-1)?.type).toBe("turn_finish"));
  const texts = taken.map((event) => (event.payload as { text?: string }).text);
  expect(texts).toEqual([undefined, "hm hm ", "a".repeat(100_000), "next", undefined]);
  expect(taken[2]?.seq).toBe(100_002);
  expect(renders()).toBe(6);
});

test("a filter selects, and `onEvent` renders nothing", async () => {
  const source = new Source();
  const filtered = taking({ filter: (event) => event.type === "turn_start" });
  const called: string[] = [];
  const { Probe, renders } = taking({ onEvent: (event) => called.push(event.type) });
  renderWith(source, <><filtered.Probe /><Probe /></>);
  source.session("s").emit(delta(0, "Hi"), line(1, "turn_start"));
  await waitFor(() => expect(filtered.taken.map((event) => event.type)).toEqual(["turn_start"]));
  expect([called, renders()]).toEqual([["cognition_out_delta", "turn_start"], 1]);
});

test("events of a session that is not shown any more are not taken", async () => {
  const source = new Source();
  const { Probe, last } = probe(() => {
    const [sessionId, choose] = useState("s");
    return { ...useEvents({ sessionId }), choose };
  });
  renderWith(source, <Probe />);
  source.session("s").emit(line(0, "turn_start"), line(1, "notice"));
  act(() => last().choose("t"));
  expect(last().event).toBeNull();
  await waitFor(() => expect(source.session("s").listeners.size).toBe(0));
  source.session("t").emit(line(0, "step_start"));
  await waitFor(() => expect(last().event?.type).toBe("step_start"));
});
