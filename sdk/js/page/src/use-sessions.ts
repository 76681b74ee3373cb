import type { SessionSummary, TidegateClient } from "@tidegate/client";
import { useCallback, useEffect, useState } from "react";

/** How often the list is asked for while it is visible: other front ends change it, too. */
const EVERY_MS = 5000;

export interface SessionsState {
  readonly client: TidegateClient;
  /** `undefined` until the first answer. */
  readonly list: readonly SessionSummary[] | undefined;
  /** Why the last request failed. */
  readonly error: unknown;
  readonly reload: () => void;
}

/** The sessions of the user, the latest first. */
export function useSessions(client: TidegateClient): SessionsState {
  const [list, setList] = useState<readonly SessionSummary[]>();
  const [error, setError] = useState<unknown>();
  const [asked, setAsked] = useState(0);
  const reload = useCallback(() => setAsked((count) => count + 1), []);
  useEffect(() => {
    let isCurrent = true;
    const load = async () => {
      try {
        const sessions = await client.sessions.list();
        if (!isCurrent) return;
        setList((old) => (JSON.stringify(old) === JSON.stringify(sessions) ? old : sessions));
        setError(undefined);
      } catch (reason) {
        if (isCurrent) setError(reason);
      }
    };
    void load();
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") void load();
    }, EVERY_MS);
    return () => {
      isCurrent = false;
      clearInterval(timer);
    };
  }, [client, asked]);
  return { client, list, error, reload };
}
