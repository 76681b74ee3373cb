import type { Primitive, SessionAccessor, Unsubscribe } from "@tidegate/client";
import { atNextFrame } from "./frame.js";
import { Mounts } from "./mounts.js";

/**
 * A primitive as `useSyncExternalStore` takes it. Rendering starts nothing, so that a render that is thrown away leaves nothing behind: the primitive
 * follows its session while a component is mounted. What events change is published once a frame.
 */
export class Store<P extends Primitive<unknown>> {
  /** The state before the first event: what a server renders. */
  readonly initial: P["state"];
  readonly #make: () => P;
  readonly #session: SessionAccessor | undefined;
  readonly #mounts = new Mounts(() => this.#follow());
  #live: P | undefined;
  #published: P["state"];

  /** `make` makes the primitive, without a subscription of its own; without `session`, it is driven by `drive`. */
  constructor(make: () => P, session: SessionAccessor | undefined) {
    this.#make = make;
    this.#session = session;
    this.#live = this.#begin();
    this.initial = this.#published = this.#live.state;
    // On a server nothing is ever mounted. In a browser, the memory of one that never is goes when it is collected.
    if (typeof window === "undefined") this.#end();
  }

  readonly subscribe = this.#mounts.subscribe;

  readonly snapshot = (): P["state"] => this.#published;

  /** Does what the user has asked for. It is published at once: a controlled input needs its value in the same task. */
  act<Result>(action: (primitive: P) => Result): Result {
    const primitive = this.#primitive();
    try {
      const result = action(primitive);
      if (primitive.takeCommands().length > 0) throw new Error("nothing can be sent: the hook has no `sessionId`");
      return result;
    } finally {
      this.#publish();
    }
  }

  /** Feeds the primitive. What changes is published at the next frame. */
  drive(feed: (primitive: P) => void): void {
    feed(this.#primitive());
  }

  #primitive(): P {
    return (this.#live ??= this.#begin());
  }

  #begin(): P {
    const primitive = this.#make();
    primitive.onStateChange(() => atNextFrame(this.#publish));
    return primitive;
  }

  #follow(): Unsubscribe {
    const primitive = this.#primitive();
    const undo = this.#session && primitive.follow(this.#session);
    return () => {
      undo?.();
      this.#end();
    };
  }

  #end(): void {
    this.#live?.destroy();
    this.#live = undefined;
  }

  readonly #publish = (): void => {
    if (!this.#live || this.#live.state === this.#published) return;
    this.#published = this.#live.state;
    this.#mounts.notify();
  };
}
