import { memo } from "react";
import { Exact } from "./exact.js";

const KINDS: Readonly<Record<string, string>> = { "+": "ins", "-": "del", "@": "at" };

/** A unified diff. The signs at the line starts stay, so that colours are not needed. */
export const Diff = memo(function Diff({ text }: { text: string }) {
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    <pre className="diff" tabIndex={0} aria-label="Change">
      {lines.map((line, index) => (
        <span key={index} className={kindOf(line)}><Exact text={line} />{"\n"}</span>
      ))}
    </pre>
  );
});

function kindOf(line: string): string | undefined {
  if (line.startsWith("+++") || line.startsWith("---")) return "at";
  return KINDS[line[0] ?? ""];
}
