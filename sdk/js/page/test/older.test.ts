import type { ChatMessage } from "@tidegate/client";
import { expect, test } from "vitest";
import { EMPTY, type Turn } from "../src/activity.js";
import { withOlder } from "../src/older.js";

const message = (turn: number, at_ms: number, more: Partial<ChatMessage>): ChatMessage => {
  const text = { kind: "text", text: `text of ${at_ms}`, complete: true } as const;
  return { id: `${at_ms}`, author: "assistant", turn, step: 1, at_ms, blocks: [text], complete: true, ...more };
};
const seen = (number: number, at_ms: number): Turn => ({
  number, at_ms, cost: 1, input_tokens: 1, output_tokens: 1, status: "completed",
  entries: [{ at_ms, step: 1, kind: "rule", label: "Rule one" }],
});
const shown = (turns: readonly Turn[]) => turns.map(({ number, at_ms, isOlder, entries }) => [number, at_ms, isOlder === true, entries.map(({ kind, label }) => `${kind}: ${label}`)]);

const MESSAGES: readonly ChatMessage[] = [
  message(1, 10, { author: "user" }),
  message(1, 11, { calls: [{ call: "c", tool: "shell", arguments: "{}", status: "done", duration_ms: 3 }] }),
  message(1, 12, { blocks: [{ kind: "text", text: "no", complete: true, void: "rule one" }, { kind: "text", text: "yes", complete: true }] }),
  message(2, 20, { author: "user", steered: true }),
  message(2, 21, { partial: "cancelled" }),
  message(3, 30, { author: "user" }),
  message(3, 31, { author: "host" }),
];

test("turns from before the events are made of messages", () => {
  // The events of turn 2 begin in its middle, those of turn 3 with it.
  const turns = [seen(2, 21), seen(3, 30)];
  expect(shown(withOlder({ ...EMPTY, turns, omitted: 9 }, MESSAGES))).toEqual([
    [1, 10, true, ["input: Input", "answer: Answer", "tool: Tool shell", "stopped: Answer stopped", "answer: Answer"]],
    [2, 20, false, ["input: Steered", "rule: Rule one"]],
    [3, 30, false, ["rule: Rule one"]],
  ]);
});

test("with all events, nothing is added", () => {
  const turns = [seen(3, 30)];
  expect(withOlder({ ...EMPTY, turns }, MESSAGES)).toBe(turns);
});
