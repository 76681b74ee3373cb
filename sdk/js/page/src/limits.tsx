import type { LimitDecision, PendingLimit, Session } from "@tidegate/client";
import { useId, useState } from "react";

interface LimitProps {
  readonly limit: PendingLimit;
  readonly session: Session;
  readonly attempt: (action: () => unknown) => void;
}

/** The limit that a turn has reached, and that waits for a decision. */
export function Limit({ limit, session, attempt }: LimitProps) {
  const onDecide = (decision: LimitDecision) =>
    attempt(() => session.send({ command: "decide_limit", request: limit.id, decision }));
  const [max, setMax] = useState(String(limit.proposed));
  const [title, field] = [useId(), useId()];
  const value = Number(max);
  const isValid = max.trim() !== "" && Number.isFinite(value) && value > limit.max;
  return (
    <section className="card question" aria-labelledby={title}>
      <h2 id={title}>Limit reached: <code>{limit.code}</code></h2>
      <p><bdi>{limit.message}</bdi></p>
      <p className="note">{limit.current} of {limit.max}</p>
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
