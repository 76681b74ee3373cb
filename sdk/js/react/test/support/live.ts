import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Primitives that were made and not destroyed, as far as they were not collected. */
export const live = new Set<WeakRef<object>>();

/** Makes a class count what is made of it. */
export function counted<Class extends new (...given: any[]) => { destroy(): void }>(Counted: Class): Class {
  return class extends Counted {
    readonly #reference = new WeakRef(this);

    constructor(...given: any[]) {
      super(...given);
      live.add(this.#reference);
    }

    override destroy(): void {
      live.delete(this.#reference);
      super.destroy();
    }
  };
}

/** How many primitives are alive when all garbage was collected. */
export async function alive(): Promise<number> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  // A reference that was read in this task is not cleared in it.
  for (let round = 0; round < 3; round += 1) {
    await new Promise((done) => setTimeout(done));
    collect();
  }
  return [...live].filter((reference) => reference.deref()).length;
}
