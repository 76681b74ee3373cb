import type { StreamEvent } from "@tidegate/client";
import { entryOf } from "./entries.js";
import { type Extension, extensionsAfter } from "./extensions.js";

/** One line of the timeline of a turn. */
export interface Entry {
  readonly at_ms: number;
  readonly step: number;
  readonly kind: "input" | "answer" | "stopped" | "failed" | "rule" | "tool" | "note";
  readonly label: string;
  readonly detail?: string | undefined;
}

/** What a rule did: it matched, or its reminder was sent. */
export interface RuleMark {
  readonly seq: number;
  readonly turn: number;
  readonly step: number;
  readonly rules: readonly string[];
  readonly stream?: string | undefined;
  readonly action?: string | undefined;
  readonly tool?: string | undefined;
  /** The bytes of the answer that the reminder replaced; absent where a rule matched. */
  readonly discarded_bytes?: number | undefined;
}

export interface Turn {
  readonly number: number;
  readonly at_ms: number;
  readonly entries: readonly Entry[];
  readonly cost: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly end_ms?: number;
  readonly status?: string;
  /** It is from before the events that the page has, and of it only what messages show is known. */
  readonly isOlder?: true;
}

/** What events show of a session apart from its messages. */
export interface ActivityState {
  readonly turns: readonly Turn[];
  readonly rules: readonly RuleMark[];
  readonly activeRules: number | undefined;
  readonly extensions: readonly Extension[];
  readonly notices: readonly Entry[];
  /** Ids of the inputs that were queued as text without attachments. */
  readonly texts: ReadonlySet<string>;
  /** How many events came as a snapshot, without what is shown here. */
  readonly omitted: number;
  readonly model: string | undefined;
  readonly context: number | undefined;
}

export const EMPTY: ActivityState = {
  turns: [],
  rules: [],
  activeRules: undefined,
  extensions: [],
  notices: [],
  texts: new Set(),
  omitted: 0,
  model: undefined,
  context: undefined,
};

/** Most events are deltas, which change nothing here. */
const PASSED = new Set(["cognition_out_delta", "cognition_reasoning_delta", "tool_call_progress"]);
const NOTICES = new Set(["notice", "state_lost", "journal_failed"]);
const MOST_NOTICES = 5;

/** Returns the state after an event: the same object where nothing changed. */
export function after(state: ActivityState, event: StreamEvent): ActivityState {
  if (PASSED.has(event.type)) return state;
  const payload = (event.payload ?? {}) as Payload;
  const entry = entryOf(event.type, payload, event);
  let next = withTurn(state, event, payload, entry);
  const extensions = extensionsAfter(next.extensions, event.type, payload);
  if (extensions !== next.extensions) next = { ...next, extensions };
  if (entry && NOTICES.has(event.type)) next = { ...next, notices: [...next.notices, entry].slice(-MOST_NOTICES) };
  return withRest(next, event, payload);
}

/** The fields of all payloads that are read here; each event has some of them. */
export interface Payload {
  readonly [field: string]: unknown;
}

export const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
export const number = (value: unknown): number => (typeof value === "number" ? value : 0);
export const list = (value: unknown): readonly string[] => (Array.isArray(value) ? value.map(String) : []);

function withTurn(state: ActivityState, event: StreamEvent, payload: Payload, entry: Entry | undefined): ActivityState {
  if (event.turn === 0) return state;
  const last = state.turns.at(-1);
  const known = last?.number === event.turn ? last : undefined;
  let turn: Turn = known ?? { number: event.turn, at_ms: event.ts, entries: [], cost: 0, input_tokens: 0, output_tokens: 0 };
  if (entry) turn = { ...turn, entries: [...turn.entries, entry] };
  if (event.type === "turn_finish") turn = { ...turn, end_ms: event.ts, status: text(payload["status"]) ?? "" };
  if (event.type === "step_finish") turn = withStep(turn, payload);
  if (turn === known) return state;
  return { ...state, turns: [...(known ? state.turns.slice(0, -1) : state.turns), turn] };
}

function withStep(turn: Turn, payload: Payload): Turn {
  const tokens = (payload["tokens"] ?? {}) as Payload;
  return {
    ...turn,
    cost: turn.cost + number(payload["cost"]),
    input_tokens: turn.input_tokens + number(tokens["input_tokens"]),
    output_tokens: turn.output_tokens + number(tokens["output_tokens"]),
  };
}

function withRest(state: ActivityState, event: StreamEvent, payload: Payload): ActivityState {
  const { seq, turn, step } = event;
  const mark = (rules: readonly string[], more: Partial<RuleMark>) => ({ ...state, rules: [...state.rules, { seq, turn, step, rules, ...more }] });
  switch (event.type) {
    case "rule_fired": {
      const { rule, stream, action, tool } = payload;
      return mark([String(rule)], { stream: text(stream), action: text(action), tool: text(tool) });
    }
    case "ttsr_injection":
      return mark(list(payload["rules"]), { discarded_bytes: number(payload["discarded_bytes"]) });
    case "input_queued":
      return payload["parts"] === undefined ? { ...state, texts: new Set(state.texts).add(String(payload["id"])) } : state;
    case "rules_reloaded":
      return { ...state, activeRules: number(payload["active"]) };
    case "thread_started":
    case "thread_resumed":
      return { ...state, model: text(payload["model"]) };
    case "step_finish": {
      const used = number(payload["context_tokens"]);
      return used > 0 ? { ...state, context: used } : state;
    }
    default:
      return state;
  }
}
