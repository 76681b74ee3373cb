import type { SessionSource, StreamEvent } from "@tidegate/client";
import { useEffect, useSyncExternalStore } from "react";
import { EventQueue } from "./event-queue.js";
import { useClient } from "./provider.js";
import { useKept, useLatest } from "./use-store.js";

/** The options of {@link useEvents}. */
export interface UseEventsOptions {
  readonly sessionId?: string;
  /** Selects events. Default: all. */
  readonly filter?: (event: StreamEvent) => boolean;
  /** Called with each event as it arrives, in the place of rendering it: `event` stays `null`. */
  readonly onEvent?: (event: StreamEvent) => void;
}

/** What {@link useEvents} returns. */
export interface UseEventsResult {
  /** The event to take now, or `null` before the first. */
  readonly event: StreamEvent | null;
}

/**
 * Renders the events of a session's own thread: each is `event` in one render, in order, and none is left out. Deltas that arrive faster than frames
 * are joined. Events before a snapshot are not known.
 */
export function useEvents(options: UseEventsOptions = {}): UseEventsResult {
  const client = useClient<SessionSource>();
  const latest = useLatest(options);
  const { sessionId } = options;
  const queue = useKept(() => {
    const session = sessionId === undefined ? undefined : client.session(sessionId);
    return new EventQueue(session, (event) => {
      const { filter, onEvent } = latest.current;
      if (filter && !filter(event)) return false;
      onEvent?.(event);
      return onEvent === undefined;
    });
  }, [client, sessionId]);
  const event = useSyncExternalStore(queue.subscribe, queue.snapshot, () => null);
  useEffect(() => queue.shown(event), [queue, event]);
  return { event };
}
