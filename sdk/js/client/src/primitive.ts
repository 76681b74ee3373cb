import type { Output } from "./change.js";
import { Instance } from "./engine.js";
import { EventError } from "./errors.js";
import type { StreamEvent, StreamItem } from "./events.js";
import { attempt, Listeners } from "./listeners.js";
import type { MessageTransform } from "./message-store.js";
import { type Connection, DISCONNECTED, type SessionAccessor, type SessionSource } from "./session.js";
import type { Answer, ChildThread, Command, Question, Receipt, SavedChat, Unsubscribe } from "./types.js";
import { View } from "./view.js";

/** What each primitive takes. */
export interface PrimitiveOptions {
  /** The session whose events it takes, and which its commands go to. */
  readonly sessionId?: string;
  /** Take the events of the session, which is the default; `false`: a parent calls `processEvent`. */
  readonly subscribe?: boolean;
  /**
   * Called where a command was refused or could not be delivered, an event cannot be read ({@link EventError}), or a function among the options or a
   * listener has thrown. Default: it is written to the console.
   */
  readonly onError?: (error: unknown) => void;
}

/** Decides about a question; throwing asks the person. */
export type Decider = (question: Question) => Answer | undefined;

interface Settings {
  readonly transform?: MessageTransform | undefined;
  readonly decide?: Decider | undefined;
}

/** An action that was refused: the question is not open, the message does not wait any more, or it is blank. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
}

/** What all primitives are: a state machine of the module, what is known of its state, and its listeners. */
export abstract class Primitive<State> {
  protected readonly view: View;
  /** Whether the session is connected, where it is followed. */
  protected connection: Connection = DISCONNECTED;
  readonly #settings: Settings;
  readonly #instance: Instance;
  readonly #listeners: Listeners;
  readonly #accessor: SessionAccessor | undefined;
  readonly #report: (error: unknown) => void;
  #unsubscribe: Unsubscribe | undefined;
  #commands: Command[] = [];
  #snapshot: State | undefined;
  #nextSeq = 0;
  #destroyed = false;

  protected constructor(client: SessionSource | null, options: PrimitiveOptions, module: object, settings: Settings = {}) {
    this.#settings = settings;
    this.#report = options.onError ?? ((error) => console.error(error));
    this.#listeners = new Listeners(this.#report);
    this.view = new View(settings.transform);
    this.#instance = new Instance(module);
    this.view.apply(this.#instance.start());
    if (client && options.sessionId !== undefined) {
      this.#accessor = client.session(options.sessionId);
      if (options.subscribe !== false) this.#unsubscribe = this.follow(this.#accessor);
    }
  }

  /** The state, which is the same object until something changes. */
  get state(): State {
    return (this.#snapshot ??= this.createSnapshot());
  }

  /** Calls `listener` after each event and action that changed something, once. */
  onStateChange(listener: () => void): Unsubscribe {
    return this.#listeners.add(listener);
  }

  /** Takes what happens in a session, and whether it is connected, until the result is called. The constructor does it, unless `subscribe` is `false`. */
  follow(session: SessionAccessor): Unsubscribe {
    const undoConnection = session.onConnection?.((state, error) => this.processConnection({ state, error }));
    const undoItems = session.onItem((item) => this.processItem(item));
    const { connection, connectionError = null } = session;
    if (connection !== undefined) this.processConnection({ state: connection, error: connectionError });
    return () => {
      undoConnection?.();
      undoItems();
    };
  }

  /** Takes whether the session is connected. */
  processConnection(connection: Connection): void {
    const { state, error } = this.connection;
    if (this.#destroyed || (connection.state === state && connection.error === error)) return;
    this.connection = connection;
    if (this.showsConnection) this.#notify();
  }

  /** Takes the next event of the session. One that was taken already changes nothing. */
  processEvent(event: StreamEvent): void {
    const seq = (event as { readonly event?: number }).event ?? event.seq;
    if (this.#destroyed || seq < this.#nextSeq) return;
    attempt(() => this.beforeEvent(event), this.#report);
    if (this.#destroyed) return;
    this.#nextSeq = seq + 1;
    const fed = this.#instance.event(event);
    if (typeof fed === "number") {
      this.view.add(event, fed);
      this.#notify();
    } else if (fed) this.#takeEvent(event, fed);
  }

  /** Takes the next event of a child agent: its messages and its questions. */
  processChildEvent(child: ChildThread, event: StreamEvent): void {
    if (this.#destroyed) return;
    attempt(() => this.beforeEvent(event, child), this.#report);
    if (this.#destroyed) return;
    const output = this.#instance.child(child, event);
    if (output) this.#takeEvent(event, output);
  }

  /** Takes what the stream of a session gives: an event of its own or of a child, or what comes in the place of events. */
  processItem(item: StreamItem): void {
    if (item.kind === "event") this.processEvent(item.event);
    else if (item.kind === "child") this.processChildEvent(item.child, item.event);
    else if (item.kind === "snapshot") this.restore(item.chat);
    else if (item.kind === "child_snapshot") this.restoreChild(item.child, item.chat);
  }

  /** Continues from what another chat has learnt, in the place of events that were missed. */
  restore(chat: SavedChat): void {
    this.act("restore", { chat });
    this.#nextSeq = chat.next_seq;
  }

  /** Continues a child agent from what a chat of its own has learnt. */
  restoreChild(child: ChildThread, chat: SavedChat): void {
    this.act("restore_child", { child, chat });
  }

  /** What is to be done with the session, where no client does it; each command once. */
  takeCommands(): Command[] {
    return this.#commands.splice(0);
  }

  /** Reports what became of a message, where no client does it. */
  acknowledge(id: string, receipt: Receipt): void {
    this.act("acknowledge", { id, as: receipt });
  }

  /** Ends the subscription and frees the memory of the state machine. */
  destroy(): void {
    if (this.#destroyed) return;
    this.#destroyed = true;
    this.#unsubscribe?.();
    this.#listeners.clear();
    this.#instance.destroy();
  }

  protected abstract createSnapshot(): State;

  /** Sees each event before it is taken. */
  protected beforeEvent(_event: StreamEvent, _child?: ChildThread): void {}

  /** Does something and returns its result. */
  protected act(name: string, fields: object): Output["result"] {
    if (this.#destroyed) throw new RefusedError("the primitive was destroyed");
    const output = this.#instance.act(name, fields);
    this.#take(output);
    if (output.error !== undefined) throw new RefusedError(output.error);
    return output.result;
  }

  #takeEvent(event: StreamEvent, output: Output): void {
    this.#take(output);
    if (output.error !== undefined) this.#report(new EventError(event.type, output.error));
  }

  /** Takes what an event or an action gave: the change, the policy's answers, the commands, and one notification. */
  #take(output: Output): void {
    let changed = this.view.apply(output);
    const commands = [...(output.commands ?? [])];
    for (const id of output.asked ?? []) {
      const decided = this.#decide(id);
      if (!decided) continue;
      changed = this.view.apply(decided) || changed;
      commands.push(...(decided.commands ?? []));
    }
    if (this.#accessor) for (const command of commands) void this.#send(this.#accessor, command);
    else this.#commands.push(...commands);
    if (changed) this.#notify();
  }

  #decide(id: string): Output | undefined {
    const question = this.view.questions.find((one) => one.id === id && one.answer === undefined);
    if (!question || !this.#settings.decide) return undefined;
    try {
      const answer = this.#settings.decide(question);
      return answer && this.#instance.act("respond", { question: id, answer });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      return this.#instance.act("policy_failed", { question: id, why });
    }
  }

  /** Has the session carry a command out, and takes what came of it. */
  async #send(accessor: SessionAccessor, command: Command): Promise<void> {
    try {
      const receipts = await accessor.send(command);
      if (this.#destroyed || !this.hasReceipts) return;
      for (const { id, ...receipt } of receipts) this.acknowledge(id, receipt as Receipt);
    } catch (error) {
      if (!this.#destroyed) this.#failed(command, error);
      this.#report(error);
    }
  }

  /** A command did not reach the session, or was refused: the question is open again, the messages are in the queue again. */
  #failed(command: Command, error: unknown): void {
    const why = error instanceof Error ? error.message : String(error);
    if (command.command === "answer") {
      this.#take(this.#instance.act("answer_failed", { question: command.question, why }));
      return;
    }
    if (!this.hasReceipts || command.command === "edit") return;
    const messages = "messages" in command ? command.messages : "message" in command ? [command.message] : [];
    for (const { id } of messages) this.acknowledge(id, { receipt: "queued" });
  }

  /** Whether the connection is a part of the state. */
  protected get showsConnection(): boolean {
    return false;
  }

  /** Whether messages of the user have receipts here. */
  protected get hasReceipts(): boolean {
    return false;
  }

  #notify(): void {
    this.#snapshot = undefined;
    this.#listeners.call();
  }
}
