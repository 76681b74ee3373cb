import type { Unsubscribe } from "./types.js";

/** Functions that are called with the same values. One that throws keeps no other from being called. */
export class Listeners<Given extends readonly unknown[] = []> {
  /** Each call of `add` is an entry of its own, also with the same function. */
  readonly #entries = new Set<{ readonly listener: (...given: Given) => void }>();
  readonly #failed: (error: unknown) => void;

  /** `failed` takes what a listener throws. */
  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Returns what ends the subscription, the first time that it is called. */
  add(listener: (...given: Given) => void): Unsubscribe {
    const entry = { listener };
    this.#entries.add(entry);
    return () => void this.#entries.delete(entry);
  }

  /** Calls the listeners that are subscribed now. One that an earlier one has removed is not called. */
  call(...given: Given): void {
    for (const entry of [...this.#entries]) {
      if (this.#entries.has(entry)) attempt(() => entry.listener(...given), this.#failed);
    }
  }

  clear(): void {
    this.#entries.clear();
  }
}

/** Calls a function of the user. What it throws is reported and goes no further. */
export function attempt(action: () => void, failed: (error: unknown) => void): void {
  try {
    action();
  } catch (error) {
    failed(error);
  }
}
