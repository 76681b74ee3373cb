import type { Sent, Session, Waiting as Waits, Way } from "@tidegate/client";
import type { UseChatResult } from "@tidegate/react";
import { useId, useState } from "react";

const WAYS: Readonly<Record<Way, string>> = {
  prompt: "starts a turn",
  steer: "after this step",
  queue: "when idle",
  interrupt: "at once",
};

interface WaitingProps {
  readonly chat: UseChatResult;
  /** Ids of the messages in the session that have no attachments. */
  readonly texts: ReadonlySet<string>;
  readonly session: Session;
  readonly attempt: (action: () => unknown) => void;
  /** Takes the text of a message that the session has given back. */
  readonly onBack: (text: string) => void;
}

/** The messages that are not in the conversation yet: those on their way, and those that wait in the session, from whichever front end. */
export function Waiting(props: WaitingProps) {
  const { chat, attempt } = props;
  const waiting = new Set(chat.waiting.map(({ id }) => id));
  const sent = chat.sent.filter(({ message }) => !waiting.has(message.id));
  const queued = chat.queued.filter(({ id }) => !waiting.has(id));
  const isConnected = chat.connection === "open";
  if (waiting.size + sent.length + queued.length === 0) return null;
  return (
    <section className="card waiting" aria-label="Messages that wait">
      <ul>
        {sent.map(({ message, way, edited }: Sent) => (
          <li key={message.id}><Receipt text={isConnected ? `sent, ${WAYS[way]}` : "is sent when the connection is back"} /><bdi>{edited ?? message.text}</bdi></li>
        ))}
        {queued.map((message) => (
          <Entry key={message.id} waits={{ ...message, way: "queue" }} receipt="not sent" {...props} />
        ))}
        {chat.waiting.map((waits) => (
          <Entry key={waits.id} waits={waits} receipt={`waits, ${WAYS[waits.way]}`} {...props} />
        ))}
      </ul>
      {!chat.isExecuting && <button type="button" onClick={() => attempt(() => chat.flush())}>Send now</button>}
    </section>
  );
}

function Entry({ waits, receipt, chat, texts, session, attempt, onBack }: WaitingProps & { waits: Waits; receipt: string }) {
  const [draft, setDraft] = useState<string>();
  const field = useId();
  const queued = chat.queued.find(({ id }) => id === waits.id);
  // The input line takes text alone: attachments would be lost.
  const own = queued ?? chat.sent.find(({ message }) => message.id === waits.id)?.message;
  const isText = own ? !own.attachments?.length : texts.has(waits.id);
  const takeBack = async () => {
    const back = queued && chat.takeBack(waits.id);
    if (back) return onBack(back.text);
    const [receipt] = await session.send({ command: "take_back", id: waits.id });
    if (receipt?.receipt === "returned") onBack(waits.text);
  };
  if (draft !== undefined) {
    return (
      <li>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            attempt(() => chat.edit(waits.id, draft));
            setDraft(undefined);
          }}
        >
          <label className="hidden" htmlFor={field}>Text of the message</label>
          <textarea id={field} autoFocus dir="auto" rows={2} value={draft} onChange={(event) => setDraft(event.target.value)} />
          <div className="actions">
            <button type="submit" className="primary">Save</button>
            <button type="button" onClick={() => setDraft(undefined)}>Back</button>
          </div>
        </form>
      </li>
    );
  }
  return (
    <li>
      <Receipt text={receipt} />
      <bdi>{waits.text}</bdi>
      <span className="actions">
        <button type="button" className="quiet" onClick={() => setDraft(waits.text)}>Edit</button>
        {isText && <button type="button" className="quiet" onClick={() => attempt(takeBack)}>Take back</button>}
        <button type="button" className="quiet" onClick={() => attempt(() => chat.removeQueued(waits.id))}>Remove</button>
      </span>
    </li>
  );
}

function Receipt({ text }: { text: string }) {
  return <span className="tag">{text}</span>;
}
