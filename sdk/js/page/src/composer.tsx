import type { UseChatResult } from "@tidegate/react";
import { type Ref, useId, useImperativeHandle, useLayoutEffect, useRef, useState } from "react";

type Way = "steer" | "queue" | "interrupt";

const WAYS: readonly (readonly [Way, string, string])[] = [
  ["steer", "Steer", "The model gets it after its current step."],
  ["queue", "Queue", "It is sent when the session is idle."],
  ["interrupt", "Interrupt", "What the model is writing is stopped for it."],
];

/** What others do with the field. */
export interface ComposerHandle {
  /** Puts a text in front of what is in it. */
  give(text: string): void;
}

interface ComposerProps {
  readonly ref: Ref<ComposerHandle>;
  readonly chat: UseChatResult;
  readonly attempt: (action: () => unknown) => void;
  readonly onCancel: () => void;
  /** Continues the conversation without an input; absent where there is nothing to continue. */
  readonly onContinue: (() => void) | undefined;
}

export function Composer({ ref, chat, attempt, onCancel, onContinue }: ComposerProps) {
  const { isExecuting } = chat;
  const [text, setText] = useState("");
  const [way, setWay] = useState<Way>("steer");
  const field = useRef<HTMLTextAreaElement>(null);
  const hint = useId();
  useImperativeHandle(ref, () => ({
    give(given) {
      setText((old) => (old.trim() === "" ? given : `${given}\n${old}`));
      field.current?.focus();
    },
  }), []);
  useLayoutEffect(() => {
    const at = field.current;
    if (!at) return;
    at.style.height = "auto";
    at.style.height = `${Math.min(at.scrollHeight + 2, 240)}px`;
  }, [text]);
  const send = () => {
    if (text.trim() === "") return;
    attempt(() => (isExecuting ? chat[way](text) : chat.submit(text)));
    setText("");
  };
  const pressed = (event: React.KeyboardEvent) => {
    // A key that ends the input of a composed character is not meant for the message.
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {isExecuting && (
        <fieldset className="ways">
          <legend className="hidden">While the model works</legend>
          {WAYS.map(([one, name, about]) => (
            <label key={one} title={about}>
              <input type="radio" name="way" value={one} checked={way === one} onChange={() => setWay(one)} /> {name}
            </label>
          ))}
          <span className="note">{WAYS.find(([one]) => one === way)?.[2]}</span>
        </fieldset>
      )}
      <div className="field">
        <label className="hidden" htmlFor="message">Message</label>
        <textarea
          ref={field}
          id="message"
          dir="auto"
          rows={1}
          placeholder="Message"
          value={text}
          aria-describedby={hint}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={pressed}
        />
        <span id={hint} className="hidden">Enter sends, Shift and Enter begins a new line.</span>
        {onContinue && <button type="button" onClick={onContinue}>Continue</button>}
        {isExecuting && <button type="button" onClick={onCancel}>Cancel</button>}
        <button type="submit" className="primary" disabled={text.trim() === ""}>Send</button>
      </div>
    </form>
  );
}
