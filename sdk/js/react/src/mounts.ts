import type { Unsubscribe } from "@tidegate/client";

/** What runs from the first subscription to the last, as `useSyncExternalStore` makes them when a component is mounted and unmounted. */
export class Mounts {
  readonly #start: () => Unsubscribe;
  readonly #listeners = new Set<() => void>();
  #stop: Unsubscribe | undefined;

  constructor(start: () => Unsubscribe) {
    this.#start = start;
  }

  readonly subscribe = (listener: () => void): Unsubscribe => {
    this.#listeners.add(listener);
    this.#stop ??= this.#start();
    return () => {
      this.#listeners.delete(listener);
      // Strict mode and a changed key unmount and mount in one task, which is no reason to start again.
      queueMicrotask(this.#release);
    };
  };

  notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  readonly #release = (): void => {
    if (this.#listeners.size > 0) return;
    this.#stop?.();
    this.#stop = undefined;
  };
}
