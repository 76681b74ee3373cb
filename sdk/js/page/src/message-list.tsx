import type { ChatMessage } from "@tidegate/client";
import type { UseChatResult } from "@tidegate/react";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { ActivityState, RuleMark } from "./activity.js";
import { Message } from "./message.js";

/** How many messages are in the page at first, and how many come with each look further back. */
const PAGE = 60;
/** How far from the end, in pixels, counts as at the end. */
const NEAR = 80;

const NONE: readonly RuleMark[] = [];

export function MessageList({ chat, activity }: { chat: UseChatResult; activity: ActivityState }) {
  const { messages, children, isExecuting } = chat;
  const isWorking = isExecuting && chat.chatMode === "streaming" && chat.connection === "open";
  const [most, setMost] = useState(PAGE);
  const marks = useMarks(activity.rules);
  const [scroller, isAtEnd, toEnd] = useEnd();
  const hidden = Math.max(0, messages.length - most);
  return (
    <div className="messages" ref={scroller} tabIndex={0} role="region" aria-label="Conversation">
      {hidden > 0 && (
        <button type="button" className="quiet earlier" onClick={() => setMost(most + PAGE * 2)}>
          Show earlier messages ({hidden})
        </button>
      )}
      <ol>
        {messages.slice(hidden).map((message) => (
          <Message key={message.id} message={message} marks={marksOf(message, marks)} />
        ))}
      </ol>
      {children.map(({ thread, messages: own }) => (
        <details className="child" key={thread.id}>
          <summary>Child agent <bdi>{thread.agent}</bdi> ({own.length} messages)</summary>
          <ol>{own.slice(-PAGE).map((message) => <Message key={message.id} message={message} marks={NONE} />)}</ol>
        </details>
      ))}
      {messages.length === 0 && !isExecuting && <p className="empty">Nothing was written yet.</p>}
      <p className={isWorking ? "working" : "hidden"} role="status">{isWorking && "Working …"}</p>
      {!isAtEnd && <button type="button" className="to-end" onClick={toEnd}>To the end ↓</button>}
    </div>
  );
}

type Marks = ReadonlyMap<string, readonly RuleMark[]>;

function useMarks(rules: readonly RuleMark[]): Marks {
  return useMemo(() => {
    const marks = new Map<string, RuleMark[]>();
    for (const mark of rules) {
      const at = `${mark.turn}.${mark.step}`;
      marks.set(at, [...(marks.get(at) ?? []), mark]);
    }
    return marks;
  }, [rules]);
}

function marksOf(message: ChatMessage, marks: Marks): readonly RuleMark[] {
  return (message.author === "assistant" && marks.get(`${message.turn}.${message.step}`)) || NONE;
}

/** Stays at the end of what grows, unless the person has scrolled away from it. */
function useEnd() {
  const scroller = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const [isAtEnd, setAtEnd] = useState(true);
  const toEnd = () => {
    const at = scroller.current;
    if (at) at.scrollTop = at.scrollHeight;
  };
  useEffect(() => {
    const at = scroller.current;
    if (!at) return;
    const scrolled = () => {
      follows.current = at.scrollHeight - at.scrollTop - at.clientHeight < NEAR;
      setAtEnd(follows.current);
    };
    const grown = new ResizeObserver(() => {
      if (follows.current) toEnd();
    });
    at.addEventListener("scroll", scrolled, { passive: true });
    grown.observe(at);
    for (const part of at.children) grown.observe(part);
    return () => {
      at.removeEventListener("scroll", scrolled);
      grown.disconnect();
    };
  }, []);
  useLayoutEffect(() => {
    if (follows.current) toEnd();
  });
  return [scroller, isAtEnd, toEnd] as const;
}
