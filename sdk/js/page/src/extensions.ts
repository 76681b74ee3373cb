import { list, type Payload } from "./activity.js";

/** A plugin or another extension of the session. */
export interface Extension {
  readonly id: string;
  readonly version: string;
  readonly callbacks: readonly string[];
  readonly isRegistered: boolean;
  /** The state of its circuit breaker where that is not closed. */
  readonly breaker: string | undefined;
  readonly failures: number;
  readonly lastFailure: string | undefined;
}

/** Returns the extensions after an event: the same list where nothing changed. */
export function extensionsAfter(all: readonly Extension[], type: string, payload: Payload): readonly Extension[] {
  const id = payload["extension_id"];
  if (typeof id !== "string") return all;
  const known = all.find((one) => one.id === id);
  const next = changed(known ?? blank(id), type, payload);
  if (next === undefined) return all;
  return known ? all.map((one) => (one === known ? next : one)) : [...all, next];
}

function changed(one: Extension, type: string, payload: Payload): Extension | undefined {
  switch (type) {
    case "extension_registered": {
      const callbacks = list((payload["callbacks"] as readonly unknown[] | undefined)?.map(nameOf));
      return { ...one, version: String(payload["version"]), callbacks, isRegistered: true };
    }
    case "extension_unregistered":
      return { ...one, isRegistered: false };
    case "extension_breaker":
      return { ...one, breaker: payload["state"] === "closed" ? undefined : String(payload["state"]) };
    case "extension_callback":
    case "extension_tool": {
      if (!payload["cause"]) return undefined;
      const lastFailure = `${payload["callback"] ?? payload["tool"]}: ${payload["cause"]}`;
      return { ...one, failures: one.failures + 1, lastFailure };
    }
    default:
      return undefined;
  }
}

function nameOf(callback: unknown): unknown {
  return typeof callback === "object" && callback !== null ? Object.values(callback)[0] : callback;
}

function blank(id: string): Extension {
  return { id, version: "", callbacks: [], isRegistered: true, breaker: undefined, failures: 0, lastFailure: undefined };
}
