import { expect, test } from "vitest";
import { MessageLog } from "../src/message-log.js";
import { ChatSession } from "../src/chat-session.js";
import type { StreamEvent } from "../src/events.js";

const DELTAS = 100_000;

function delta(seq: number): StreamEvent {
  const payload = { text: "word ", chunk_index: seq };
  return { seq, ts: seq, thread_id: "t", turn: 1, step: 1, attempt: 1, type: "cognition_out_delta", payload };
}

/** Microseconds for each delta, of the fastest of three runs: a busy machine makes others slower. */
function measure(make: () => MessageLog | ChatSession): number {
  const runs = [1, 2, 3].map(() => {
    const chat = make();
    const events = Array.from({ length: DELTAS }, (_, index) => delta(index));
    let notified = 0;
    chat.onStateChange(() => (notified += chat.state.messages.length));
    const start = performance.now();
    for (const event of events) chat.processEvent(event);
    const took = performance.now() - start;
    expect(notified).toBe(DELTAS);
    expect(chat.state.messages[0]?.blocks[0]?.text.length).toBe(DELTAS * 5);
    chat.destroy();
    return (took * 1_000) / DELTAS;
  });
  return Math.min(...runs);
}

// The aim is 5 µs; time decides no test.
test("100,000 deltas are shown, with the state read after each", () => {
  const [log, chat] = [measure(() => new MessageLog()), measure(() => new ChatSession())];
  console.log(`a delta takes ${log.toFixed(2)} µs in a MessageLog, ${chat.toFixed(2)} µs in a ChatSession`);
});

test("a delta changes one message, and all others are the same objects", () => {
  const initialMessages = Array.from({ length: 1_000 }, (_, index) => ({ id: `old-${index}`, author: "user" as const }));
  const log = new MessageLog(null, { initialMessages });
  log.processEvent(delta(0));
  const before = log.messages;
  log.processEvent(delta(1));
  expect(log.messages).not.toBe(before);
  expect(log.messages.length).toBe(1_001);
  expect(log.messages.filter((message, index) => message !== before[index])).toHaveLength(1);
  expect(log.messages).toBe(log.messages);
});
