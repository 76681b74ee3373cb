import type { RuleMark } from "./activity.js";
import { fired } from "./entries.js";

/** Which rules stopped an answer, and that their reminder was sent. The reminder itself can quote what was stopped, and is not shown. */
export function RuleMarks({ marks }: { marks: readonly RuleMark[] }) {
  if (marks.length === 0) return null;
  return (
    <ul className="rules">
      {marks.map((mark) => (
        <li key={mark.seq}>
          {mark.discarded_bytes === undefined ? (
            <><strong>Rule <bdi>{mark.rules.join(", ")}</bdi></strong> {fired(mark as unknown as Record<string, unknown>)}</>
          ) : (
            <>The model was reminded of <bdi>{mark.rules.join(", ")}</bdi>; {mark.discarded_bytes} bytes of its answer were discarded</>
          )}
        </li>
      ))}
    </ul>
  );
}
