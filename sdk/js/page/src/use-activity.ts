import type { ConnectionState, Session, TidegateClient } from "@tidegate/client";
import { useClient } from "@tidegate/react";
import { useMemo, useSyncExternalStore } from "react";
import { type ActivityState, after, EMPTY } from "./activity.js";

/** What events show of a session apart from its messages, and its connection. */
export interface Observed {
  readonly activity: ActivityState;
  readonly connection: ConnectionState;
  /** Why the connection was lost last. */
  readonly error: unknown;
  /** Why the server has ended the stream. */
  readonly end: string | undefined;
}

export function useActivity(sessionId: string): Observed {
  const client = useClient<TidegateClient>();
  const store = useMemo(() => new Store(client.session(sessionId)), [client, sessionId]);
  return useSyncExternalStore(store.subscribe, store.snapshot);
}

/** Follows a session while it is subscribed to, and publishes once a frame. */
class Store {
  readonly #session: Session;
  readonly #listeners = new Set<() => void>();
  #state: Observed = { activity: EMPTY, connection: "idle", error: undefined, end: undefined };
  #published = this.#state;
  #isDue = false;

  constructor(session: Session) {
    this.#session = session;
  }

  readonly snapshot = (): Observed => this.#published;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    const undo = this.#follow();
    return () => {
      this.#listeners.delete(listener);
      for (const one of undo) one();
    };
  };

  #follow(): readonly (() => void)[] {
    this.#change({ activity: EMPTY, connection: this.#session.connection, end: undefined });
    return [
      this.#session.onConnection((connection) => this.#change(connection === "open" ? { connection, error: undefined } : { connection })),
      this.#session.onError((error) => this.#change({ error })),
      this.#session.onItem((item) => {
        const { activity } = this.#state;
        if (item.kind === "event") this.#change({ activity: after(activity, item.event) });
        else if (item.kind === "snapshot") this.#change({ activity: { ...activity, omitted: item.omitted } });
        else if (item.kind === "end") this.#change({ end: item.reason });
      }),
    ];
  }

  #change(change: Partial<Observed>): void {
    const next = { ...this.#state, ...change };
    if (next.activity === this.#state.activity && Object.keys(change).length === 1 && "activity" in change) return;
    this.#state = next;
    if (this.#isDue) return;
    this.#isDue = true;
    setTimeout(this.#publish, 16);
  }

  readonly #publish = (): void => {
    this.#isDue = false;
    this.#published = this.#state;
    for (const listener of [...this.#listeners]) listener();
  };
}
