import type { ConnectionState, SessionSource } from "@tidegate/client";
import { useCallback, useSyncExternalStore } from "react";
import { useClient } from "./provider.js";

/** The options of {@link useConnection}. */
export interface UseConnectionOptions {
  readonly sessionId?: string;
}

/** What {@link useConnection} returns. */
export interface UseConnectionResult {
  /** `idle` until another hook follows the session, `waiting` while the connection is lost, `ended` where the server refuses or has ended it. */
  readonly connection: ConnectionState;
  /** Why it is not connected, and what to do, or `null`. */
  readonly connectionError: Error | null;
}

/** Shows whether the events of a session arrive, for hooks other than `useChat`, which has it in its state. It follows no session itself. */
export function useConnection({ sessionId }: UseConnectionOptions = {}): UseConnectionResult {
  const client = useClient<SessionSource>();
  const session = sessionId === undefined ? undefined : client.session(sessionId);
  const subscribe = useCallback((listener: () => void) => session?.onConnection?.(listener) ?? (() => {}), [session]);
  const connection = useSyncExternalStore<ConnectionState>(subscribe, () => session?.connection ?? "idle", () => "idle");
  const connectionError = useSyncExternalStore(subscribe, () => session?.connectionError ?? null, () => null);
  return { connection, connectionError };
}
