import { isEvent, type SessionAccessor, type StreamEvent } from "@tidegate/client";
import { atNextFrame, inNextTask } from "./frame.js";
import { Mounts } from "./mounts.js";

/** The events of a session, each of which is rendered, in order. Deltas that wait are joined, so that an answer takes one render a frame. */
export class EventQueue {
  readonly #mounts: Mounts;
  #waiting: StreamEvent[] = [];
  #event: StreamEvent | null = null;
  #isShown = true;

  /** `take` sees each event first, and returns whether it is to be rendered. */
  constructor(session: SessionAccessor | undefined, take: (event: StreamEvent) => boolean) {
    this.#mounts = new Mounts(() => {
      const undo = session?.onItem((item) => {
        if (item.kind === "event" && take(item.event)) this.#push(item.event);
      });
      return () => {
        undo?.();
        this.#waiting = [];
      };
    });
  }

  readonly subscribe = (listener: () => void) => this.#mounts.subscribe(listener);

  readonly snapshot = (): StreamEvent | null => this.#event;

  /** Takes the event of a render that was committed, and has the next one rendered when what its effects have changed was rendered, too. */
  shown(event: StreamEvent | null): void {
    if (event !== this.#event) return;
    this.#isShown = true;
    if (this.#waiting.length > 0) inNextTask(this.#next);
  }

  #push(event: StreamEvent): void {
    const last = this.#waiting.at(-1);
    const joined = last && join(last, event);
    if (joined) this.#waiting[this.#waiting.length - 1] = joined;
    else this.#waiting.push(event);
    atNextFrame(this.#next);
  }

  readonly #next = (): void => {
    if (!this.#isShown) return;
    const next = this.#waiting.shift();
    if (!next) return;
    this.#event = next;
    this.#isShown = false;
    this.#mounts.notify();
  };
}

/** Two deltas of one text as one, which the server does, too, for a reader that is slow. */
function join(one: StreamEvent, other: StreamEvent): StreamEvent | undefined {
  const isOneText = one.turn === other.turn && one.step === other.step && one.attempt === other.attempt;
  if (!isOneText) return undefined;
  if (isEvent(one, "cognition_out_delta") && isEvent(other, "cognition_out_delta")) {
    return { ...other, payload: { ...other.payload, text: one.payload.text + other.payload.text } };
  }
  if (isEvent(one, "cognition_reasoning_delta") && isEvent(other, "cognition_reasoning_delta")) {
    return { ...other, payload: { ...other.payload, text: one.payload.text + other.payload.text } };
  }
  return undefined;
}
