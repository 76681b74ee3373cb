import type { ReactNode } from "react";

/** Characters that cannot be seen, or that change how others are seen: controls but tabs and line ends, joiners, marks of direction, tags. */
const UNSEEN = /([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}])/u;

/** Text in which nothing is hidden: characters that cannot be seen are written out. For what a person decides about. */
export function Exact({ text }: { text: string }): ReactNode {
  const parts = text.split(UNSEEN);
  if (parts.length === 1) return <bdi>{text}</bdi>;
  return <bdi>{parts.map((part, index) => (index % 2 === 1 ? <span key={index} className="odd">{code(part)}</span> : part))}</bdi>;
}

function code(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}
