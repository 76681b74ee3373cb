import type { Block, ChatMessage } from "@tidegate/client";
import { memo, useDeferredValue } from "react";
import type { RuleMark } from "./activity.js";
import { Markdown } from "./markdown.js";
import { RuleMarks } from "./rule-marks.js";
import { clock } from "./times.js";
import { ToolCall } from "./tool-call.js";

const AUTHORS = { user: "You", assistant: "Assistant", host: "Host" } as const;

interface MessageProps {
  readonly message: ChatMessage;
  /** What rules did while it was written. */
  readonly marks: readonly RuleMark[];
}

export const Message = memo(function Message({ message, marks }: MessageProps) {
  const { author, blocks, calls, images, partial } = message;
  // What a rule stopped was written before the rule has fired, and the rest after.
  const stopped = blocks.findLastIndex((block) => block.void !== undefined) + 1;
  const shown = (from: number, to?: number) =>
    blocks.slice(from, to).map((block, index) => <BlockView key={from + index} block={block} author={author} />);
  return (
    <li className={`message ${author}`}>
      <header>
        <h2>{AUTHORS[author]}</h2>
        {message.steered && <span className="tag">while it worked</span>}
        {message.extension !== undefined && <span className="tag">plugin <bdi>{message.extension}</bdi></span>}
        <time dateTime={new Date(message.at_ms).toISOString()}>{clock(message.at_ms)}</time>
      </header>
      {shown(0, stopped)}
      <RuleMarks marks={marks} />
      {shown(stopped)}
      {images?.map((image, index) => (
        <img key={index} className="attached" alt={`Attached image ${index + 1}`} src={`data:${image.media_type};base64,${image.data}`} />
      ))}
      {calls?.map((call) => <ToolCall key={call.call} call={call} />)}
      {partial !== undefined && <p className="partial">Not complete: <bdi>{partial}</bdi></p>}
      {message.notes?.map((note, index) => (
        <p key={index} className="note"><bdi>{note.extension}</bdi>: <bdi>{note.key}</bdi> <bdi>{JSON.stringify(note.value)}</bdi></p>
      ))}
    </li>
  );
});

const BlockView = memo(function BlockView({ block, author }: { block: Block; author: ChatMessage["author"] }) {
  const text = useDeferredValue(block.text);
  if (block.void !== undefined) {
    return (
      <div className="void">
        <span className="hidden">Void: </span>
        <del dir="auto">{block.text}</del>
        <p className="note"><bdi>{block.void}</bdi></p>
      </div>
    );
  }
  if (block.text === "") return null;
  if (block.kind === "reasoning") {
    return (
      <details className="reasoning">
        <summary>Reasoning</summary>
        <p dir="auto">{text}</p>
      </details>
    );
  }
  if (author !== "assistant") return <p className="plain" dir="auto">{block.text}</p>;
  return <Markdown text={text} />;
});
