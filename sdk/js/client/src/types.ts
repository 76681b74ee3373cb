import type { ChatMessage, ChildThread } from "./schema/chat.js";
import type { CommandBody, LimitBody } from "./schema/server.js";

export type * from "./schema/chat.js";

/** Something to do with the session, as the server takes it. */
export type Command = CommandBody;

/** A decision about a limit that a turn has reached. */
export type LimitDecision = LimitBody;

/** The messages of a child agent. */
export interface ChildMessages {
  readonly thread: ChildThread;
  readonly messages: readonly ChatMessage[];
}

/** What a chat has learnt from events, for a front end that reconnects. Opaque. */
export type SavedChat = { readonly next_seq: number } & { readonly [key: string]: unknown };

/** Undoes a subscription. */
export type Unsubscribe = () => void;
