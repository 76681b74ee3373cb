import type { ChatMessage } from "@tidegate/client";
import type { ActivityState, Entry, Turn } from "./activity.js";
import { duration } from "./times.js";

/**
 * The turns of a session, with those from before the events that the page has: a snapshot comes in the place of events, and its messages show what the
 * model and its tools did. What rules and plugins did, and what it cost, is not in it.
 */
export function withOlder({ turns, omitted }: ActivityState, messages: readonly ChatMessage[]): readonly Turn[] {
  if (omitted === 0) return turns;
  const known = new Map(turns.map((turn) => [turn.number, turn]));
  const older = new Map<number, Entry[]>();
  for (const message of messages) {
    const at = known.get(message.turn)?.at_ms;
    if (message.turn === 0 || (at !== undefined && message.at_ms >= at)) continue;
    const entries = older.get(message.turn) ?? [];
    entries.push(...entriesOf(message));
    older.set(message.turn, entries);
  }
  for (const [number, entries] of older) known.set(number, withEntries(known.get(number), number, entries));
  return [...known.values()].sort((one, other) => one.number - other.number);
}

function withEntries(turn: Turn | undefined, number: number, entries: readonly Entry[]): Turn {
  const at_ms = entries[0]?.at_ms ?? turn?.at_ms ?? 0;
  if (turn) return { ...turn, at_ms, entries: [...entries, ...turn.entries] };
  return { number, at_ms, entries, cost: 0, input_tokens: 0, output_tokens: 0, isOlder: true };
}

function entriesOf({ author, at_ms, step, blocks, calls = [], steered, partial }: ChatMessage): readonly Entry[] {
  const made = (kind: Entry["kind"], label: string, detail?: string): Entry => ({ at_ms, step, kind, label, detail });
  if (author !== "assistant") {
    const text = blocks.map((block) => block.text).join("");
    if (author !== "user") return [made("note", "Host", text)];
    return [made("input", steered ? "Steered" : "Input", text)];
  }
  const stopped = blocks.flatMap((block) => (block.void === undefined ? [] : [made("stopped", "Answer stopped", block.void)]));
  const isShown = blocks.some((block) => block.void === undefined && block.text !== "");
  const answer = partial !== undefined ? [made("stopped", "Answer stopped", partial)] : isShown ? [made("answer", "Answer")] : [];
  const tools = calls.map(({ tool, status, duration_ms }) => {
    const took = duration_ms === undefined ? "did not run" : duration(duration_ms);
    return status === "failed" ? made("failed", `Tool ${tool}`, `failed, ${took}`) : made("tool", `Tool ${tool}`, took);
  });
  return [...stopped, ...answer, ...tools];
}
