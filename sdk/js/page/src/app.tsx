import { TidegateClient, TidegateError } from "@tidegate/client";
import { TidegateProvider } from "@tidegate/react";
import { useCallback, useMemo, useState } from "react";
import { Chat } from "./chat.js";
import { useRoute } from "./route.js";
import { SessionList } from "./session-list.js";
import { TokenForm } from "./token-form.js";
import { useSessions } from "./use-sessions.js";

/** The token is kept as long as the tab, and is never part of an address. */
const TOKEN = "tidegate.token";

export function App() {
  const [token, setToken] = useState(() => sessionStorage.getItem(TOKEN) ?? undefined);
  const client = useMemo(() => new TidegateClient(token === undefined ? {} : { token }), [token]);
  const enter = useCallback((given: string | undefined) => {
    if (given === undefined) sessionStorage.removeItem(TOKEN);
    else sessionStorage.setItem(TOKEN, given);
    setToken(given);
  }, []);
  return (
    <TidegateProvider client={client}>
      <Sessions client={client} token={token} onToken={enter} />
    </TidegateProvider>
  );
}

interface SessionsProps {
  readonly client: TidegateClient;
  readonly token: string | undefined;
  readonly onToken: (token: string | undefined) => void;
}

function Sessions({ client, token, onToken }: SessionsProps) {
  const sessions = useSessions(client);
  const [route, go] = useRoute();
  const { error } = sessions;
  if (error instanceof TidegateError && error.status === 401) {
    return <TokenForm isRefused={token !== undefined} onToken={onToken} />;
  }
  const current = sessions.list?.find((session) => session.id === route);
  const isMissing = route !== undefined && sessions.list !== undefined && !current;
  return (
    <div className={`frame ${route === undefined ? "at-list" : "at-chat"}`}>
      {route !== undefined && !isMissing && <a className="skip" href="#message" onClick={skip}>Skip to the message</a>}
      <SessionList
        sessions={sessions}
        current={route}
        go={go}
        onLeave={token === undefined ? undefined : () => onToken(undefined)}
      />
      <main>
        {route === undefined && <Welcome />}
        {isMissing && <p className="empty">This session does not exist, or it is another user's.</p>}
        {route !== undefined && !isMissing && (
          <Chat key={route} sessionId={route} summary={current} onChange={sessions.reload} go={go} />
        )}
      </main>
    </div>
  );
}

/** The part after `#` is the session: a link must not replace it. */
function skip(event: React.MouseEvent): void {
  event.preventDefault();
  document.getElementById("message")?.focus();
}

function Welcome() {
  return (
    <div className="empty">
      <h1>Tidegate</h1>
      <p>Choose a session, or start a new one.</p>
    </div>
  );
}
