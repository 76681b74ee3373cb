import { messageOf } from "./errors.js";
import type { Observed } from "./use-activity.js";

const ENDS: Readonly<Record<string, string>> = {
  deleted: "This session was deleted.",
  closed: "You have no access to this session any more.",
};

/** Says that the page is not connected, and why. */
export function Connection({ observed }: { observed: Observed }) {
  const { connection, error, end } = observed;
  const why = error === undefined ? undefined : messageOf(error);
  if (connection === "ended") {
    return <p role="alert" className="bad">{ENDS[end ?? ""] ?? `The connection has ended${why ? `: ${why}` : "."}`}</p>;
  }
  const isLost = connection === "waiting" || (connection === "connecting" && error !== undefined);
  return <p role="status" className={isLost ? "notice" : "hidden"}>{isLost && "The connection is lost. Reconnecting …"}</p>;
}
