import type { SessionSummary } from "@tidegate/client";
import type { UseChatResult } from "@tidegate/react";
import { useMemo } from "react";
import type { ActivityState } from "./activity.js";
import type { Extension } from "./extensions.js";
import { withOlder } from "./older.js";
import { duration } from "./times.js";
import { Timeline } from "./timeline.js";

interface PanelProps {
  readonly activity: ActivityState;
  readonly summary: SessionSummary | undefined;
  readonly chat: UseChatResult;
  readonly onClose: () => void;
}

/** What happened apart from the messages: figures, plan, rules, plugins, and the timeline of each turn. */
export function Panel({ activity, summary, chat, onClose }: PanelProps) {
  const { plan, messages } = chat;
  const turns = useMemo(() => withOlder(activity, messages), [activity, messages]);
  return (
    <aside className="panel" aria-label="Activity" tabIndex={-1}>
      <header>
        <h2>Activity</h2>
        <button type="button" className="quiet" onClick={onClose}>Close</button>
      </header>
      <Figures activity={activity} summary={summary} />
      {activity.omitted > 0 && (
        <p className="note">Turns from before this page was connected are reconstructed from their messages. Their tokens, costs, rules and plugins are not counted.</p>
      )}
      {plan.length > 0 && (
        <section>
          <h3>Plan</h3>
          <ul className="plan">{plan.map((item, index) => <li key={index}><span className="tag">{item.status}</span> <bdi>{item.content}</bdi></li>)}</ul>
        </section>
      )}
      <Rules activity={activity} />
      {activity.extensions.length > 0 && (
        <section>
          <h3>Plugins</h3>
          <ul className="statuses">{activity.extensions.map((one) => <Plugin key={one.id} plugin={one} />)}</ul>
        </section>
      )}
      <section>
        <h3>Timeline</h3>
        <Timeline turns={turns} />
      </section>
    </aside>
  );
}

function Figures({ activity, summary }: { activity: ActivityState; summary: SessionSummary | undefined }) {
  const { turns, context } = activity;
  const total = (of: "cost" | "input_tokens" | "output_tokens") => turns.reduce((sum, turn) => sum + turn[of], 0);
  const cost = total("cost");
  const time = turns.reduce((sum, turn) => sum + ((turn.end_ms ?? turn.at_ms) - turn.at_ms), 0);
  const facts: (readonly [string, string])[] = [
    ["Model", activity.model ?? summary?.model ?? "not known"],
    ["Turns", String(summary?.turns ?? turns.length)],
    ["Time", duration(time)],
    ["Tokens in", total("input_tokens").toLocaleString("en")],
    ["Tokens out", total("output_tokens").toLocaleString("en")],
    ["Cost", cost > 0 ? `$${cost.toFixed(4)}` : "not known"],
  ];
  if (context) facts.push(["Context", `${context.toLocaleString("en")} tokens`]);
  return <dl className="facts">{facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd><bdi>{value}</bdi></dd></div>)}</dl>;
}

function Rules({ activity }: { activity: ActivityState }) {
  const fired = new Map<string, number>();
  for (const mark of activity.rules) {
    if (mark.discarded_bytes === undefined) for (const rule of mark.rules) fired.set(rule, (fired.get(rule) ?? 0) + 1);
  }
  return (
    <section>
      <h3>Rules</h3>
      {activity.activeRules !== undefined && <p className="note">{activity.activeRules} are active.</p>}
      {fired.size === 0 && <p className="note">None has matched {activity.omitted > 0 ? "since this page was connected" : "in this session"}.</p>}
      <ul className="statuses">
        {[...fired].map(([rule, count]) => (
          <li key={rule}><bdi>{rule}</bdi> <span className="state rule">matched {count === 1 ? "once" : `${count} times`}</span></li>
        ))}
      </ul>
    </section>
  );
}

function Plugin({ plugin }: { plugin: Extension }) {
  const { breaker, failures, isRegistered } = plugin;
  const status = !isRegistered ? "not registered" : breaker !== undefined ? `breaker ${breaker}` : failures > 0 ? "has failed" : "works";
  return (
    <li>
      <bdi>{plugin.id}</bdi> <span className="note">{plugin.version}</span>{" "}
      <span className={`state ${status === "works" ? "done" : "failed"}`}>{status}</span>
      {plugin.callbacks.length > 0 && <p className="note"><bdi>{plugin.callbacks.join(", ")}</bdi></p>}
      {plugin.lastFailure !== undefined && <p className="note">{failures} failures, the last: <bdi>{plugin.lastFailure}</bdi></p>}
    </li>
  );
}
