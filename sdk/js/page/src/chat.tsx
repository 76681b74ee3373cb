import type { SessionSummary, TidegateClient } from "@tidegate/client";
import { useChat, useClient } from "@tidegate/react";
import { useCallback, useEffect, useRef, useState } from "react";
import { Composer, type ComposerHandle } from "./composer.js";
import { Connection } from "./connection.js";
import { messageOf } from "./errors.js";
import { Limit } from "./limits.js";
import { MessageList } from "./message-list.js";
import { Panel } from "./panel.js";
import { Questions } from "./questions.js";
import type { Route } from "./route.js";
import { SessionHeader } from "./session-header.js";
import { useActivity } from "./use-activity.js";
import { Waiting } from "./waiting.js";

interface ChatProps {
  readonly sessionId: string;
  readonly summary: SessionSummary | undefined;
  readonly onChange: () => void;
  readonly go: (route: Route) => void;
}

/** A session: its conversation, what it asks, and where to write. */
export function Chat({ sessionId, summary, onChange, go }: ChatProps) {
  const client = useClient<TidegateClient>();
  const [failure, setFailure] = useState<string>();
  const [isPanelOpen, setPanelOpen] = useState(false);
  const fail = useCallback((error: unknown) => setFailure(messageOf(error)), []);
  const composer = useRef<ComposerHandle>(null);
  const chat = useChat({ sessionId, sessionQueue: true, onError: fail });
  const observed = useActivity(sessionId);
  const { isExecuting, error } = chat;
  useEffect(onChange, [isExecuting, chat.toolConfirmations.length, onChange]);
  const attempt = useCallback((action: () => unknown) => {
    setFailure(undefined);
    try {
      void Promise.resolve(action()).catch(fail);
    } catch (reason) {
      fail(reason);
    }
  }, [fail]);
  const send = useCallback(
    (command: "cancel" | "continue") => attempt(() => client.session(sessionId).send({ command })),
    [attempt, client, sessionId],
  );
  const isCancelled = observed.activity.turns.at(-1)?.status === "cancelled";
  const canContinue = !isExecuting && (error !== null || isCancelled || chat.isInterrupted);
  return (
    <div className="chat">
      <SessionHeader
        sessionId={sessionId}
        summary={summary}
        attempt={attempt}
        onChange={onChange}
        go={go}
        isPanelOpen={isPanelOpen}
        onPanel={() => setPanelOpen((isOpen) => !isOpen)}
      />
      <div className="columns">
        <div className="conversation">
          <MessageList chat={chat} activity={observed.activity} />
          <div className="dock">
            <div className="asides">
              <Connection observed={observed} />
              <Notices notices={observed.activity.notices} />
              {chat.limit && <Limit key={chat.limit.id} limit={chat.limit} session={client.session(sessionId)} attempt={attempt} />}
              <Questions chat={chat} />
              <Waiting
                chat={chat}
                texts={observed.activity.texts}
                session={client.session(sessionId)}
                attempt={attempt}
                onBack={(text) => composer.current?.give(text)}
              />
              {error && <p role="alert" className="bad">The turn has ended: {error.status}. <bdi>{error.message}</bdi></p>}
              {failure !== undefined && (
                <p role="alert" className="bad">
                  <bdi>{failure}</bdi>
                  <button type="button" className="quiet" onClick={() => setFailure(undefined)}>Dismiss</button>
                </p>
              )}
            </div>
            {summary?.gateway ? (
              <p className="note read-only">This is a conversation of the gateway. Only its client can continue it. New messages appear here.</p>
            ) : (
              <Composer
                ref={composer}
                chat={chat}
                attempt={attempt}
                onCancel={() => send("cancel")}
                onContinue={canContinue ? () => send("continue") : undefined}
              />
            )}
          </div>
        </div>
        {isPanelOpen && <Panel activity={observed.activity} summary={summary} chat={chat} onClose={() => setPanelOpen(false)} />}
      </div>
    </div>
  );
}

function Notices({ notices }: { notices: readonly { at_ms: number; label: string; detail?: string | undefined }[] }) {
  const [dismissed, setDismissed] = useState(0);
  const shown = notices.filter((notice) => notice.at_ms > dismissed);
  const last = shown.at(-1);
  if (!last) return null;
  return (
    <div className="card notices" role="status">
      <ul>{shown.map((notice, index) => <li key={index}><bdi>{notice.detail ?? notice.label}</bdi></li>)}</ul>
      <button type="button" className="quiet" onClick={() => setDismissed(last.at_ms)}>Dismiss</button>
    </div>
  );
}
