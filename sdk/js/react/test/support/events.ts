import type { StreamEvent } from "@tidegate/client";

/** A line of the shown stream of a session. */
export function line(seq: number, type: string, payload: object = {}, thread_id = "s"): StreamEvent {
  return { seq, ts: seq, thread_id, turn: 1, step: 1, attempt: 1, type, payload };
}

export function delta(seq: number, text: string): StreamEvent {
  return line(seq, "cognition_out_delta", { text, chunk_index: seq });
}

/** A question about a call of a tool. */
export function asked(seq: number, id: string, tool = "shell"): StreamEvent {
  const preview = { arguments: [], notes: [] };
  return line(seq, "tool_confirmation_requested", { question_id: id, call_id: "c", tool, input: {}, reason: "asks", preview });
}
