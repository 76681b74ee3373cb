import { Primitive, type PrimitiveOptions } from "./primitive.js";
import type { SessionSource } from "./session.js";
import type { Attachment, FlushMode, Outgoing, Receipt, Sent, SteeringMode, Waiting } from "./types.js";

/** The settings of {@link MessageSteering}. */
export interface MessageSteeringOptions extends PrimitiveOptions {
  /** What `submit` does while a turn runs. Default: `steer`. */
  readonly mode?: SteeringMode;
  /** What is sent from the queue at a time. Default: `sequential`. */
  readonly flushMode?: FlushMode;
  /** Send from the queue after a turn that completed. Default: `true`. */
  readonly autoFlush?: boolean;
  /** Queue messages in the session, where they outlive the front end. */
  readonly sessionQueue?: boolean;
  /** Names the front end in ids of messages, and is its own in the session. Default: a random one, or `user` without a client. */
  readonly name?: string;
}

/** The user's messages on their way. It is the same object until one of its values changes. */
export interface MessageSteeringState {
  /** Messages that this front end keeps until they are sent. */
  readonly queued: readonly Outgoing[];
  /** Messages that were handed over and are not delivered yet. */
  readonly sent: readonly Sent[];
  /** What waits in the session, from whichever front end. */
  readonly waiting: readonly Waiting[];
  readonly isExecuting: boolean;
  readonly mode: SteeringMode;
}

/** What sends messages, and has their receipts. */
export abstract class Steering<State> extends Primitive<State> {
  /** Sends a message if nothing runs; otherwise steers or queues it, by the mode. Returns its id. Throws a {@link RefusedError} where it is blank. */
  submit(text: string, attachments: readonly Attachment[] = []): string {
    return this.act("submit", { text, attachments }) as string;
  }

  /** Gives the running turn a message, or starts a turn with it. */
  steer(text: string, attachments: readonly Attachment[] = []): string {
    return this.act("steer", { text, attachments }) as string;
  }

  /** Aborts what the model is writing, and gives it a message then. */
  interrupt(text: string, attachments: readonly Attachment[] = []): string {
    return this.act("interrupt", { text, attachments }) as string;
  }

  /** Queues a message. */
  queue(text: string): string {
    return this.act("queue", { text }) as string;
  }

  /** Sends from the queue now. */
  flush(): void {
    this.act("flush", {});
  }

  /** Replaces the text of a message that waits. Throws a {@link RefusedError} where it does not. */
  edit(id: string, text: string): void {
    this.act("edit", { id, text });
  }

  /** Removes a message that waits, by its id or by its index in the queue. */
  removeQueued(message: string | number): void {
    const id = typeof message === "number" ? this.view.steering.queued[message]?.id : message;
    if (id !== undefined) this.act("remove", { id });
  }

  /** Removes a queued message and returns it. One that waits in the session is asked for, and its receipt says when it is back. */
  takeBack(id: string): Outgoing | undefined {
    return this.act("take_back", { id }) as Outgoing | undefined;
  }

  /** Removes all queued messages. */
  clearQueued(): void {
    this.act("clear_queue", {});
  }

  /** Chooses what the next message does while a turn runs: it steers, or waits in the queue. */
  setMode(mode: SteeringMode): void {
    this.act("set_mode", { mode });
  }

  /** What became of a message; `undefined` where it is not known, or was too long ago. */
  receipt(id: string): Receipt | undefined {
    return this.act("receipt", { id }) as Receipt | undefined;
  }

  protected override get hasReceipts(): boolean {
    return true;
  }
}

/** The messages of this front end's user, until they are in the conversation. */
export class MessageSteering extends Steering<MessageSteeringState> {
  constructor(client: SessionSource | null = null, options: MessageSteeringOptions = {}) {
    super(client, options, { kind: "steering", ...steeringOptions(client, options) });
  }

  protected createSnapshot(): MessageSteeringState {
    const { executing, mode, queued, sent, waiting = [] } = this.view.steering;
    return { queued, sent, waiting, isExecuting: executing, mode };
  }
}

/** The settings of steering, as the module takes them. */
export function steeringOptions(client: SessionSource | null, options: MessageSteeringOptions): object {
  return {
    name: options.name ?? (client ? `web-${crypto.randomUUID().slice(0, 8)}` : "user"),
    mode: options.mode ?? "steer",
    flush_mode: options.flushMode ?? "sequential",
    auto_flush: options.autoFlush ?? true,
    session_queue: options.sessionQueue ?? false,
  };
}
