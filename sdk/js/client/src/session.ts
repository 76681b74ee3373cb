import type { StreamItem } from "./events.js";
import type { ReceiptBody } from "./schema/server.js";
import type { Command, Unsubscribe } from "./types.js";

/** A receipt of a message, with its id. */
export type MessageReceipt = ReceiptBody;

/** What a primitive needs of a session. `TidegateClient` has it, and tests can bring their own. */
export interface SessionAccessor {
  /** Takes what happens in the session, from its start. */
  onItem(listener: (item: StreamItem) => void): Unsubscribe;
  /** Has the session carry a command out. */
  send(command: Command): Promise<readonly MessageReceipt[]>;
}

/** What a primitive needs of a client. */
export interface SessionSource {
  session(id: string): SessionAccessor;
}
