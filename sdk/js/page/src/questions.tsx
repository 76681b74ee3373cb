import type { Question } from "@tidegate/client";
import type { UseChatResult } from "@tidegate/react";
import { useEffect, useId, useRef, useState } from "react";
import { Diff } from "./diff.js";
import { Exact } from "./exact.js";
import { Arguments } from "./tool-call.js";

/** The questions about tool calls. One whose answer is half written stays when it is answered elsewhere. */
export function Questions({ chat }: { chat: UseChatResult }) {
  const open = chat.toolConfirmations.map(({ request }) => request);
  const [drafted, setDrafted] = useState<readonly Question[]>([]);
  const closed = drafted.filter((one) => !chat.questions.some(({ id }) => id === one.id));
  const onDraft = (question: Question, isDrafted: boolean) =>
    setDrafted((all) => [...all.filter(({ id }) => id !== question.id), ...(isDrafted ? [question] : [])]);
  const all = [...open, ...closed];
  return (
    <div aria-live="polite" className="questions">
      {all.map((question) => (
        <QuestionCard
          key={question.id}
          question={question}
          isClosed={!open.some(({ id }) => id === question.id)}
          chat={chat}
          onDraft={onDraft}
        />
      ))}
    </div>
  );
}

interface QuestionCardProps {
  readonly question: Question;
  readonly isClosed: boolean;
  readonly chat: UseChatResult;
  readonly onDraft: (question: Question, isDrafted: boolean) => void;
}

type Form = "choice" | "deny" | "edit";

function QuestionCard({ question, isClosed, chat, onDraft }: QuestionCardProps) {
  const { id, tool, child, preview, always } = question;
  const [form, setForm] = useState<Form>("choice");
  const [draft, setDraft] = useState("");
  const title = useId();
  const open = (next: Form, text: string) => {
    setForm(next);
    setDraft(text);
    onDraft(question, false);
  };
  const write = (text: string) => {
    setDraft(text);
    onDraft(question, text !== "");
  };
  const answer = (given: Parameters<UseChatResult["answer"]>[1]) => {
    chat.answer(id, given);
    open("choice", "");
  };
  return (
    <section className="card question" aria-labelledby={title}>
      <h2 id={title}>
        {child ? <><bdi>{child.agent}</bdi> asks</> : "Allow"} <code><Exact text={tool} /></code>{child ? "" : "?"}
      </h2>
      <p className="note"><bdi>{question.reason}</bdi></p>
      {question.error !== undefined && <p role="alert" className="bad"><bdi>{question.error}</bdi></p>}
      <Arguments json={question.arguments} />
      {preview.diff !== undefined && <Diff text={preview.diff} />}
      {preview.notes?.map((note, index) => <p key={index} className="note"><Exact text={note} /></p>)}
      {isClosed && <p role="status" className="notice">It was answered elsewhere. <button type="button" className="quiet" onClick={() => onDraft(question, false)}>Dismiss</button></p>}
      {form === "choice" && !isClosed && (
        <div className="actions">
          <button type="button" className="primary" onClick={() => answer({ decision: "approve" })}>Approve</button>
          <button type="button" onClick={() => open("deny", "")}>Deny …</button>
          <button type="button" onClick={() => open("edit", pretty(question.arguments))}>Edit arguments …</button>
          {always !== undefined && (
            <button type="button" onClick={() => answer({ decision: "always" })}>Always allow <code><Exact text={always} /></code></button>
          )}
        </div>
      )}
      {form === "deny" && (
        <AnswerForm label="Reason, which the model reads" action="Deny" draft={draft} isClosed={isClosed} onWrite={write}
          onCancel={() => open("choice", "")}
          onSubmit={() => answer(draft.trim() === "" ? { decision: "deny" } : { decision: "deny", reason: draft.trim() })} />
      )}
      {form === "edit" && (
        <AnswerForm label="Arguments as JSON" action="Run with these" draft={draft} isClosed={isClosed} onWrite={write} isCode
          error={problemOf(draft)}
          onCancel={() => open("choice", "")}
          onSubmit={() => answer({ decision: "edit", arguments: draft })} />
      )}
      {question.expires_ms !== undefined && !isClosed && <Expiry at={question.expires_ms} />}
    </section>
  );
}

interface AnswerFormProps {
  readonly label: string;
  readonly action: string;
  readonly draft: string;
  readonly isClosed: boolean;
  readonly isCode?: boolean;
  readonly error?: string | undefined;
  readonly onWrite: (text: string) => void;
  readonly onSubmit: () => void;
  readonly onCancel: () => void;
}

function AnswerForm({ label, action, draft, isClosed, isCode, error, onWrite, onSubmit, onCancel }: AnswerFormProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  const id = useId();
  useEffect(() => field.current?.focus(), []);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (error === undefined && !isClosed) onSubmit();
      }}
    >
      <label htmlFor={id}>{label}</label>
      <textarea
        ref={field}
        id={id}
        className={isCode ? "code" : undefined}
        dir="auto"
        rows={isCode ? Math.min(12, draft.split("\n").length + 1) : 2}
        spellCheck={!isCode}
        value={draft}
        aria-invalid={error !== undefined}
        onChange={(event) => onWrite(event.target.value)}
      />
      {error !== undefined && <p className="bad">{error}</p>}
      <div className="actions">
        <button type="submit" className="primary" disabled={isClosed || error !== undefined}>{action}</button>
        <button type="button" onClick={onCancel}>Back</button>
      </div>
    </form>
  );
}

function Expiry({ at }: { at: number }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return <p className="note" aria-live="off">Answered by itself in {Math.max(0, Math.ceil((at - now) / 1000))} s.</p>;
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

function problemOf(json: string): string | undefined {
  try {
    JSON.parse(json);
    return undefined;
  } catch (error) {
    return `This is not JSON: ${error instanceof Error ? error.message : ""}`;
  }
}
