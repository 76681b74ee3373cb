import type { ChildThread, SavedChat } from "./types.js";

/** What every line of the shown stream has, whatever its type. */
export interface Line {
  /** The number of the event in the thread. Events of which nothing was shown leave gaps. */
  readonly seq: number;
  /** Milliseconds since 1970-01-01 UTC. */
  readonly ts: number;
  /** The session's id. */
  readonly thread_id: string;
  /** The turn, from 1; 0 before the first. */
  readonly turn: number;
  /** The step in the turn, from 1; 0 before the first. */
  readonly step: number;
  /** The attempt in the step, from 1; 0 before the first. */
  readonly attempt: number;
}

/** The payloads of the types that front ends use most. */
export interface Payloads {
  readonly cognition_out_delta: { readonly text: string; readonly chunk_index: number; readonly is_final?: boolean };
  readonly cognition_reasoning_delta: { readonly text: string };
  readonly tool_confirmation_requested: {
    readonly question_id?: string;
    readonly call_id: string;
    readonly tool: string;
    readonly input: unknown;
    readonly reason: string;
  };
  readonly tool_call_start: { readonly call_id: string; readonly tool: string; readonly input: unknown };
  readonly tool_call_progress: { readonly call_id: string; readonly message: string; readonly progress?: number };
  readonly turn_start: Readonly<Record<string, never>>;
  readonly turn_finish: { readonly status: string; readonly error?: string };
  readonly step_start: { readonly turn_number: number };
  readonly notice: { readonly message: string };
}

/** An event of a type with a typed payload. */
export type KnownEvent = { [Type in keyof Payloads]: Line & { readonly type: Type; readonly payload: Payloads[Type] } }[
  keyof Payloads
];

/** An event of any other type. */
export type OtherEvent = Line & { readonly type: string & {}; readonly payload: unknown };

/** A line of the shown stream, or a record of a transcript. */
export type StreamEvent = KnownEvent | OtherEvent;

/** What a stream of a session gives. */
export type StreamItem =
  | { readonly kind: "event"; readonly event: StreamEvent }
  | { readonly kind: "child"; readonly child: ChildThread; readonly event: StreamEvent }
  | { readonly kind: "child_snapshot"; readonly child: ChildThread; readonly omitted: number; readonly chat: SavedChat }
  | { readonly kind: "snapshot"; readonly omitted: number; readonly chat: SavedChat }
  | { readonly kind: "end"; readonly reason: string };

/** Whether an event is of a type, whose payload is known then. */
export function isEvent<Type extends keyof Payloads>(
  event: StreamEvent,
  type: Type,
): event is Line & { readonly type: Type; readonly payload: Payloads[Type] } {
  return event.type === type;
}
