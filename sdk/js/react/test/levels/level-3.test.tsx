import type { StreamEvent } from "@tidegate/client";
import { isEvent } from "@tidegate/client";
import { screen } from "@testing-library/react";
import { useEffect, useReducer } from "react";
import { expect, test } from "vitest";
import { useEvents } from "../../src/index.js";
import { delta, line } from "../support/events.js";
import { renderWith } from "../support/render.js";
import { Source } from "../support/source.js";

interface State {
  readonly text: string;
  readonly tools: readonly string[];
  readonly status: string;
}

const initialState: State = { text: "", tools: [], status: "idle" };

function myReducer(state: State, event: StreamEvent): State {
  if (isEvent(event, "cognition_out_delta")) return { ...state, text: state.text + event.payload.text };
  if (isEvent(event, "tool_call_start")) return { ...state, tools: [...state.tools, event.payload.tool] };
  if (isEvent(event, "turn_finish")) return { ...state, status: event.payload.status };
  return state;
}

function FullyCustom({ sessionId }: { sessionId: string }) {
  const { event } = useEvents({ sessionId });
  const [state, dispatch] = useReducer(myReducer, initialState);

  useEffect(() => {
    if (event) dispatch(event);
  }, [event]);

  return <output title={state.status}>{`${state.tools.length} tools: ${state.text}`}</output>;
}

test("a reducer takes every event, however many arrive at once", async () => {
  const source = new Source();
  renderWith(source, <FullyCustom sessionId="s" />);
  const events = Array.from({ length: 300 }, (_, seq) =>
    seq % 3 < 2 ? delta(seq, "ab ") : line(seq, "tool_call_start", { call_id: `c-${seq}`, tool: "shell", input: {} }));
  source.session("s").emit(...events, line(300, "turn_finish", { status: "completed" }));
  const shown = await screen.findByTitle("completed");
  expect(shown.textContent).toBe(`100 tools: ${"ab ".repeat(200)}`);
});
