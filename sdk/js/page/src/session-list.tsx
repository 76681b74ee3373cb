import type { SessionSummary } from "@tidegate/client";
import { useState } from "react";
import { messageOf } from "./errors.js";
import type { Route } from "./route.js";
import { ago } from "./times.js";
import type { SessionsState } from "./use-sessions.js";

interface SessionListProps {
  readonly sessions: SessionsState;
  readonly current: Route;
  readonly go: (route: Route) => void;
  /** Forgets the token; absent where none is needed. */
  readonly onLeave: (() => void) | undefined;
}

export function SessionList({ sessions, current, go, onLeave }: SessionListProps) {
  const { list, error } = sessions;
  const [isCreating, setCreating] = useState(false);
  const [failure, setFailure] = useState<string>();
  const create = async () => {
    setCreating(true);
    try {
      const { id } = await sessions.client.sessions.create();
      sessions.reload();
      setFailure(undefined);
      go(id);
    } catch (reason) {
      setFailure(messageOf(reason));
    } finally {
      setCreating(false);
    }
  };
  return (
    <nav className="sessions" aria-label="Sessions">
      <header>
        <span className="brand">Tidegate</span>
        <button type="button" className="primary" disabled={isCreating} onClick={() => void create()}>
          New session
        </button>
      </header>
      {error !== undefined && <p role="alert" className="bad">The list cannot be loaded: {messageOf(error)}</p>}
      {failure !== undefined && <p role="alert" className="bad">{failure}</p>}
      {list?.length === 0 && <p className="note">There is no session yet.</p>}
      <ul>
        {list?.map((session) => (
          <li key={session.id}>
            <Entry session={session} isCurrent={session.id === current} />
          </li>
        ))}
      </ul>
      {onLeave && <button type="button" className="quiet leave" onClick={onLeave}>Forget the token</button>}
    </nav>
  );
}

function Entry({ session, isCurrent }: { session: SessionSummary; isCurrent: boolean }) {
  return (
    <a href={`#/${encodeURIComponent(session.id)}`} aria-current={isCurrent ? "page" : undefined}>
      <bdi className="name">{session.title ?? "Untitled"}</bdi>
      <span className="facts">
        {session.state !== "idle" && <span className={`state ${session.state}`}>{session.state}</span>}
        <span>{ago(session.updated_ms)}</span>
        {session.model !== undefined && <bdi>{session.model}</bdi>}
        {session.users.length > 0 && <span>shared</span>}
        {session.gateway && <span>gateway</span>}
      </span>
    </a>
  );
}
