import type { LimitDecision, Session } from "@tidegate/client";
import { useId, useState } from "react";
import type { LimitRequest } from "./activity.js";

interface LimitsProps {
  readonly limits: readonly LimitRequest[];
  readonly session: Session;
  readonly attempt: (action: () => unknown) => void;
}

/** The limits that a turn has reached, and that wait for a decision. */
export function Limits({ limits, session, attempt }: LimitsProps) {
  const decide = (request: string, decision: LimitDecision) =>
    attempt(() => session.send({ command: "decide_limit", request, decision }));
  return limits.map((limit) => <Limit key={limit.id} limit={limit} onDecide={(decision) => decide(limit.id, decision)} />);
}

function Limit({ limit, onDecide }: { limit: LimitRequest; onDecide: (decision: LimitDecision) => void }) {
  const [max, setMax] = useState(String(limit.proposed));
  const [title, field] = [useId(), useId()];
  const value = Number(max);
  const isValid = max.trim() !== "" && Number.isFinite(value) && value > limit.max;
  return (
    <section className="card question" aria-labelledby={title}>
      <h2 id={title}>Limit reached: <code>{limit.code}</code></h2>
      <p><bdi>{limit.message}</bdi></p>
      <p className="note">{limit.value} of {limit.max}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (isValid) onDecide({ decision: "approve", max: value });
        }}
      >
        <label htmlFor={field}>New limit</label>
        <input id={field} inputMode="decimal" value={max} aria-invalid={!isValid} onChange={(event) => setMax(event.target.value)} />
        <div className="actions">
          <button type="submit" className="primary" disabled={!isValid}>Raise it</button>
          <button type="button" onClick={() => onDecide({ decision: "deny" })}>Deny</button>
        </div>
      </form>
    </section>
  );
}
