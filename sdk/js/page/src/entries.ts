import type { StreamEvent } from "@tidegate/client";
import { type Entry, list, number, type Payload, text } from "./activity.js";
import { duration } from "./times.js";

type Made = readonly [kind: Entry["kind"], label: string, detail?: string | undefined];

const MAKERS: Readonly<Record<string, (payload: Payload) => Made | undefined>> = {
  input_received: (payload) => ["input", "Input", text(payload["text"])],
  steering_message: (payload) => ["input", "Steered", text(payload["text"])],
  cognition_out: answer,
  rule_fired: (payload) => ["rule", `Rule ${payload["rule"]}`, fired(payload)],
  ttsr_injection: (payload) => [
    "rule",
    `Reminder of ${list(payload["rules"]).join(", ")}`,
    `sent to the model; ${number(payload["discarded_bytes"])} bytes of its answer were discarded`,
  ],
  tool_call_result: (payload) => [
    payload["is_error"] === true ? "failed" : "tool",
    `Tool ${payload["tool"]}`,
    [payload["is_error"] === true ? "failed" : undefined, took(payload)].filter(Boolean).join(", ") || "did not run",
  ],
  tool_confirmation_requested: (payload) => ["note", `Asked about ${payload["tool"]}`, text(payload["reason"])],
  tool_confirmation_resolved: (payload) => ["note", `Answered: ${payload["decision"]}`, by(payload["decided_by"])],
  error_classified: (payload) => ["failed", `Error: ${payload["category"]}`, text(payload["error_code"])],
  retry_scheduled: (payload) => [
    "note",
    `Retry ${payload["retry"]} of ${payload["max_retries"]}`,
    `in ${duration(number(payload["delay_ms"]))}`,
  ],
  limit_escalation_requested: (payload) => ["note", "Limit reached", text(payload["message"])],
  limit_escalation_resolved: (payload) => ["note", `Limit: ${payload["decision"]}`, by(payload["decided_by"])],
  child_thread_started: (payload) => ["note", `Child agent ${payload["child_directive"]}`],
  child_thread_failed: () => ["failed", "A child agent has failed"],
  context_compaction_end: (payload) => [
    payload["error"] ? "failed" : "note",
    "Conversation compacted",
    text(payload["error"]) ?? `${number(payload["kept_messages"])} messages kept`,
  ],
  extension_callback: (payload) => failedCall(payload, "callback"),
  extension_tool: (payload) => failedCall(payload, "tool"),
  extension_breaker: (payload) => ["note", `Plugin ${payload["extension_id"]}`, `breaker ${payload["state"]}`],
  extension_withheld: (payload) => ["rule", `Plugin ${payload["extension_id"]}`, `withheld ${number(payload["bytes"])} bytes`],
  rules_reloaded: (payload) => ["note", "Rules reloaded", `${number(payload["active"])} active`],
  notice: (payload) => ["note", "Notice", text(payload["message"])],
  state_lost: (payload) => ["failed", "State lost", text(payload["message"])],
  journal_failed: (payload) => ["failed", "Not recorded", text(payload["message"])],
  turn_finish: (payload) =>
    payload["status"] === "completed" ? undefined : ["failed", `Turn ${payload["status"]}`, text(payload["error"]) ?? text(payload["reason"])],
};

/** The line of the timeline that an event is, if it is one. */
export function entryOf(type: string, payload: Payload, { ts, step }: StreamEvent): Entry | undefined {
  const made = Object.hasOwn(MAKERS, type) ? MAKERS[type]?.(payload) : undefined;
  return made && { at_ms: ts, step, kind: made[0], label: made[1], detail: made[2] };
}

function answer(payload: Payload): Made {
  if (payload["is_partial"] !== true) return ["answer", "Answer", text(payload["model"])];
  return ["stopped", "Answer stopped", text(payload["error"])];
}

/** What a rule matched on, and what was done. */
export function fired({ stream, action, tool }: Payload): string {
  const on = stream === "tool" && tool !== undefined ? `the call of ${tool}` : `the ${stream}`;
  return `matched in ${on}: ${action}`;
}

function took(payload: Payload): string | undefined {
  return payload["duration_ms"] === undefined || payload["duration_ms"] === null ? undefined : duration(number(payload["duration_ms"]));
}

function by(who: unknown): string | undefined {
  return who === undefined || who === null ? undefined : `by ${who}`;
}

function failedCall(payload: Payload, what: "callback" | "tool"): Made | undefined {
  if (!payload["cause"]) return undefined;
  return ["failed", `Plugin ${payload["extension_id"]}`, `${payload[what]}: ${payload["outcome"]}, ${payload["cause"]}`];
}
