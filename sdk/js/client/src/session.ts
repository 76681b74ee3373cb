import type { StreamItem } from "./events.js";
import type { ReceiptBody } from "./schema/server.js";
import type { Command, Unsubscribe } from "./types.js";

/** A receipt of a message, with its id. */
export type MessageReceipt = ReceiptBody;

/**
 * Whether the stream of a session is connected. `idle`: nobody listens; `waiting`: the connection is lost, and there is another attempt after a while;
 * `ended`: the server has ended it, or refuses it.
 */
export type ConnectionState = "idle" | "connecting" | "open" | "waiting" | "ended";

/** Whether a session is connected, and why not. */
export interface Connection {
  readonly state: ConnectionState;
  /** Why it is not connected; `null` while it is, and before the first attempt has failed. */
  readonly error: Error | null;
}

/** The connection of a session that nobody follows. */
export const DISCONNECTED: Connection = { state: "idle", error: null };

/** What a primitive needs of a session. `TidegateClient` has it, and tests can bring their own. */
export interface SessionAccessor {
  /** Whether it is connected; absent where it always is. */
  readonly connection?: ConnectionState;
  /** Why it is not connected. */
  readonly connectionError?: Error | null;
  /** Takes what happens in the session, from its start. */
  onItem(listener: (item: StreamItem) => void): Unsubscribe;
  /** Takes each change of the connection; absent where there is none. */
  onConnection?(listener: (state: ConnectionState, error: Error | null) => void): Unsubscribe;
  /** Has the session carry a command out. */
  send(command: Command): Promise<readonly MessageReceipt[]>;
}

/** What a primitive needs of a client. */
export interface SessionSource {
  /** Returns the access to a session, without a request. The same id has the same access. */
  session(id: string): SessionAccessor;
}
