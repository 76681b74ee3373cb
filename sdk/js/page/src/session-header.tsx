import type { SessionSummary, TidegateClient } from "@tidegate/client";
import { useClient } from "@tidegate/react";
import { useId, useRef, useState } from "react";
import type { Route } from "./route.js";

const FORMATS = [
  ["md", "Markdown", "text/markdown"],
  ["html", "HTML", "text/html"],
  ["jsonl", "JSON Lines", "application/x-ndjson"],
] as const;

interface SessionHeaderProps {
  readonly sessionId: string;
  readonly summary: SessionSummary | undefined;
  readonly attempt: (action: () => unknown) => void;
  readonly onChange: () => void;
  readonly go: (route: Route) => void;
  readonly isPanelOpen: boolean;
  readonly onPanel: () => void;
}

export function SessionHeader(props: SessionHeaderProps) {
  const { sessionId, summary, attempt, go } = props;
  const client = useClient<TidegateClient>();
  const menu = useRef<HTMLDialogElement>(null);
  const after = (action: () => Promise<unknown>) => {
    menu.current?.close();
    attempt(async () => {
      await action();
      props.onChange();
    });
  };
  const fork = async () => go((await client.sessions.fork(sessionId)).id);
  const remove = async () => {
    await client.sessions.delete(sessionId);
    go(undefined);
  };
  return (
    <header className="session-header">
      <a className="back" href="#" aria-label="All sessions">←</a>
      <h1><bdi>{summary?.title ?? "Untitled"}</bdi></h1>
      {summary?.model !== undefined && <bdi className="note model">{summary.model}</bdi>}
      <button type="button" aria-expanded={props.isPanelOpen} onClick={props.onPanel}>Activity</button>
      <button type="button" aria-haspopup="dialog" onClick={() => menu.current?.showModal()}>Session</button>
      <dialog ref={menu} aria-label="Session" onClick={(event) => event.target === menu.current && menu.current.close()}>
        <div className="menu">
          <p className="note">Owner <bdi>{summary?.owner}</bdi>, agent <bdi>{summary?.agent}</bdi>, id <code>{sessionId}</code></p>
          {!summary?.gateway && <button type="button" onClick={() => after(fork)}>Fork: continue in a copy</button>}
          {FORMATS.map(([format, name, type]) => (
            <button key={format} type="button" onClick={() => after(async () => save(`${sessionId}.${format}`, type, await client.sessions.export(sessionId, format)))}>
              Export as {name}
            </button>
          ))}
          {!summary?.gateway && <Sharing summary={summary} after={after} />}
          <Deletion onDelete={() => after(remove)} />
          <button type="button" className="primary" onClick={() => menu.current?.close()}>Close</button>
        </div>
      </dialog>
    </header>
  );
}

function Sharing({ summary, after }: { summary: SessionSummary | undefined; after: (action: () => Promise<unknown>) => void }) {
  const client = useClient<TidegateClient>();
  const [user, setUser] = useState("");
  const field = useId();
  if (!summary) return null;
  const { id, users } = summary;
  return (
    <form
      className="sharing"
      onSubmit={(event) => {
        event.preventDefault();
        if (user !== "") after(() => client.sessions.share(id, user));
        setUser("");
      }}
    >
      <label htmlFor={field}>Share with the user</label>
      <div className="field">
        <input id={field} value={user} autoComplete="off" spellCheck={false} onChange={(event) => setUser(event.target.value.trim())} />
        <button type="submit" disabled={user === ""}>Share</button>
      </div>
      {users.map((name) => (
        <p key={name}><bdi>{name}</bdi> <button type="button" className="quiet" onClick={() => after(() => client.sessions.unshare(id, name))}>End sharing</button></p>
      ))}
    </form>
  );
}

function Deletion({ onDelete }: { onDelete: () => void }) {
  const [isSure, setSure] = useState(false);
  if (!isSure) return <button type="button" onClick={() => setSure(true)}>Delete …</button>;
  return <button type="button" className="danger" onClick={onDelete}>Delete it with its transcript</button>;
}

function save(name: string, type: string, content: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
