import { memo } from "react";
import type { Entry, Turn } from "./activity.js";
import { duration } from "./times.js";

/** How many turns are shown, the latest last. */
const MOST_TURNS = 50;

export function Timeline({ turns }: { turns: readonly Turn[] }) {
  const shown = turns.slice(-MOST_TURNS);
  return (
    <>
      {shown.length < turns.length && <p className="note">Earlier turns are in the export.</p>}
      {shown.map((turn, index) => <TurnView key={turn.number} turn={turn} isLast={index === shown.length - 1} />)}
      {turns.length === 0 && <p className="note">There was no turn yet.</p>}
    </>
  );
}

const TurnView = memo(function TurnView({ turn, isLast }: { turn: Turn; isLast: boolean }) {
  const runs = turn.isOlder ? undefined : "runs";
  const facts = [
    turn.end_ms === undefined ? runs : turn.status,
    turn.end_ms === undefined ? undefined : duration(turn.end_ms - turn.at_ms),
    turn.output_tokens > 0 ? `${turn.output_tokens.toLocaleString("en")} tokens` : undefined,
    turn.cost > 0 ? `$${turn.cost.toFixed(4)}` : undefined,
  ];
  return (
    <details className="turn" open={isLast}>
      <summary>Turn {turn.number} <span className="note">{facts.filter(Boolean).join(" · ")}</span></summary>
      <ol className="entries">
        {turn.entries.map((entry, index) => <EntryView key={index} entry={entry} from={turn.at_ms} />)}
      </ol>
    </details>
  );
});

function EntryView({ entry, from }: { entry: Entry; from: number }) {
  return (
    <li className={entry.kind}>
      <p className="label"><bdi>{entry.label}</bdi> <span className="time">+{duration(entry.at_ms - from)}</span></p>
      {entry.detail !== undefined && <p className="detail" dir="auto">{entry.detail}</p>}
    </li>
  );
}
