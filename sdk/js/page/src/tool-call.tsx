import type { ToolEntry, ToolStatus } from "@tidegate/client";
import { memo } from "react";
import { Diff } from "./diff.js";
import { Exact } from "./exact.js";
import { duration } from "./times.js";

const STATUSES: Readonly<Record<ToolStatus, string>> = {
  proposed: "proposed",
  asking: "asks",
  running: "running",
  done: "done",
  failed: "failed",
  not_run: "did not run",
  cancelled: "cancelled",
};

export const ToolCall = memo(function ToolCall({ call }: { call: ToolEntry }) {
  const { status, diff, output, percent } = call;
  return (
    <details className={`tool ${status}`} open={diff !== undefined}>
      <summary>
        <span className="tool-name"><bdi>{call.tool}</bdi></span>
        <span className={`state ${status}`}>{STATUSES[status]}</span>
        {call.summary !== undefined && <bdi className="summary">{call.summary}</bdi>}
        {call.duration_ms !== undefined && <span className="time">{duration(call.duration_ms)}</span>}
      </summary>
      {status === "running" && percent !== undefined && <progress max={100} value={percent} aria-label={`Progress of ${call.tool}`} />}
      <Arguments json={call.arguments} />
      {diff !== undefined && <Diff text={diff} />}
      {output !== undefined && output !== "" && (
        <>
          <h3>Output</h3>
          <pre tabIndex={0}><bdi>{output}</bdi></pre>
        </>
      )}
      {call.waited_ms !== undefined && <p className="note">Waited {duration(call.waited_ms)} for an answer.</p>}
    </details>
  );
});

/** Arguments by their names; those that are no JSON object as they are. */
export function Arguments({ json }: { json: string }) {
  const named = argumentsOf(json);
  if (named?.length === 0 || json === "") return null;
  return (
    <dl className="arguments">
      {(named ?? [["arguments", json] as const]).map(([name, value]) => (
        <div key={name}>
          <dt><Exact text={name} /></dt>
          <dd><pre tabIndex={0}><Exact text={value} /></pre></dd>
        </div>
      ))}
    </dl>
  );
}

function argumentsOf(json: string): readonly (readonly [string, string])[] | undefined {
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    return Object.entries(value).map(([name, one]) => [name, typeof one === "string" ? one : JSON.stringify(one, null, 2)]);
  } catch {
    return undefined;
  }
}
