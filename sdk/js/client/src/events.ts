import type { Shown } from "./schema/server.js";
import type { ChildThread, SavedChat } from "./types.js";

/** What every line of the shown stream has, whatever its type. */
export type Line = Pick<Shown, "seq" | "ts" | "thread_id" | "turn" | "step" | "attempt">;

/** An event of a type that this version knows. */
export type KnownEvent = Shown;

/** The payload of each type of event. */
export type Payloads = { readonly [Event in Shown as Event["type"]]: Event["payload"] };

/** An event of any other type, such as one that a later version or a plugin has added. */
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
