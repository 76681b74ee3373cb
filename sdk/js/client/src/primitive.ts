import { applyGrown, type Output, type SteeringParts } from "./change.js";
import { Instance } from "./engine.js";
import { isEvent, type StreamEvent, type StreamItem } from "./events.js";
import { MessageStore, type MessageTransform } from "./message-store.js";
import type {
  Answer,
  Attachment,
  ChildMessages,
  ChildThread,
  Command,
  PlanItem,
  Question,
  Receipt,
  SavedChat,
  TurnError,
  Unsubscribe,
} from "./types.js";
import type { SessionAccessor, SessionSource } from "./session.js";

/** What each primitive takes. */
export interface PrimitiveOptions {
  /** The session whose events it takes, and which its commands go to. */
  readonly sessionId?: string;
  /** Take the events of the session, which is the default; `false`: a parent calls `processEvent`. */
  readonly subscribe?: boolean;
  /** Called where a command could not be delivered. */
  readonly onError?: (error: unknown) => void;
}

/** The text of the current answer as the user has seen it, without what is void. */
export interface StreamingTextState {
  readonly active: boolean;
  readonly text: string;
  readonly reasoning: string;
}

/** Decides about a question; throwing asks the person. */
export type Decider = (question: Question) => Answer | undefined;

interface Settings {
  readonly transform?: MessageTransform | undefined;
  readonly decide?: Decider | undefined;
}

/** An action that was refused: the question is not open, or the message does not wait any more. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
}

/** What all primitives are: a state machine of the module, what is known of its state, and its listeners. */
export abstract class Primitive<State> {
  protected readonly own: MessageStore;
  protected questions: readonly Question[] = [];
  protected steering: SteeringParts = { executing: false, mode: "steer", queued: [], sent: [] };
  protected streaming: StreamingTextState = { active: false, text: "", reasoning: "" };
  protected lastSent: { readonly id: string; readonly text: string } | null = null;
  protected turnError: TurnError | null = null;
  protected planItems: readonly PlanItem[] = [];
  protected attached: readonly Attachment[] = [];
  readonly #children: { readonly thread: ChildThread; readonly store: MessageStore }[] = [];
  readonly #settings: Settings;
  readonly #instance: Instance;
  readonly #listeners = new Set<() => void>();
  readonly #accessor: SessionAccessor | undefined;
  readonly #onError: ((error: unknown) => void) | undefined;
  #unsubscribe: Unsubscribe | undefined;
  #commands: Command[] = [];
  #snapshot: State | undefined;
  #nextSeq = 0;
  #destroyed = false;

  protected constructor(client: SessionSource | null, options: PrimitiveOptions, module: object, settings: Settings = {}) {
    this.#settings = settings;
    this.own = new MessageStore(settings.transform);
    this.#instance = new Instance(module);
    this.#onError = options.onError;
    this.#apply(this.#instance.start());
    if (client && options.sessionId !== undefined) {
      this.#accessor = client.session(options.sessionId);
      if (options.subscribe !== false) this.#unsubscribe = this.#accessor.onItem((item) => this.processItem(item));
    }
  }

  /** The state, which is the same object until something changes. */
  get state(): State {
    return (this.#snapshot ??= this.createSnapshot());
  }

  /** Calls `listener` after each event and action that changed something, once. */
  onStateChange(listener: () => void): Unsubscribe {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Takes the next event of the session. One that was taken already changes nothing. */
  processEvent(event: StreamEvent): void {
    const seq = (event as { readonly event?: number }).event ?? event.seq;
    if (this.#destroyed || seq < this.#nextSeq) return;
    this.beforeEvent(event);
    this.#nextSeq = seq + 1;
    const fed = this.#instance.event(event);
    if (typeof fed === "number") this.#added(event, fed);
    else if (fed) this.#take(fed);
  }

  /** Takes the next event of a child agent: its messages and its questions. */
  processChildEvent(child: ChildThread, event: StreamEvent): void {
    if (this.#destroyed) return;
    this.beforeEvent(event, child);
    const output = this.#instance.child(child, event);
    if (output) this.#take(output);
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

  protected get children(): readonly ChildMessages[] {
    return this.#children.map(({ thread, store }) => ({ thread, messages: store.list }));
  }

  /** Does something and returns its result. */
  protected act(name: string, fields: object): Output["result"] {
    if (this.#destroyed) throw new RefusedError("the primitive was destroyed");
    const output = this.#instance.act(name, fields);
    this.#take(output);
    if (output.error !== undefined) throw new RefusedError(output.error);
    return output.result;
  }

  /** A delta that was added to the last block of a message, and nothing else: nearly every event. */
  #added(event: StreamEvent, index: number): void {
    if (isEvent(event, "cognition_out_delta")) {
      this.streaming = { ...this.streaming, text: this.streaming.text + event.payload.text };
      this.own.add(index, event.payload.text);
    } else if (isEvent(event, "cognition_reasoning_delta")) {
      this.streaming = { ...this.streaming, reasoning: this.streaming.reasoning + event.payload.text };
      this.own.add(index, event.payload.text);
    }
    this.#notify();
  }

  /** Takes what an event or an action gave: the change, the policy's answers, the commands, and one notification. */
  #take(output: Output): void {
    let changed = this.#apply(output);
    const commands = [...(output.commands ?? [])];
    for (const id of output.asked ?? []) {
      const decided = this.#decide(id);
      if (!decided) continue;
      changed = this.#apply(decided) || changed;
      commands.push(...(decided.commands ?? []));
    }
    if (this.#accessor) for (const command of commands) void this.#send(this.#accessor, command);
    else this.#commands.push(...commands);
    if (changed) this.#notify();
  }

  #decide(id: string): Output | undefined {
    const question = this.questions.find((one) => one.id === id && one.answer === undefined);
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
      this.#onError?.(error);
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

  /** Whether messages of the user have receipts here. */
  protected get hasReceipts(): boolean {
    return false;
  }

  #notify(): void {
    this.#snapshot = undefined;
    for (const listener of [...this.#listeners]) listener();
  }

  #apply(output: Output | undefined): boolean {
    const change = output?.change;
    if (!change) return output?.changed === true;
    const { messages, streaming } = change;
    if (messages?.own) this.own.apply(messages.own);
    if (messages?.cleared) this.#children.length = 0;
    for (const [index, thread, one] of messages?.children ?? []) {
      const child = (this.#children[index] ??= { thread, store: new MessageStore(this.#settings.transform) });
      child.store.apply(one);
    }
    if (streaming) {
      const { active, text, reasoning } = this.streaming;
      this.streaming = {
        active: streaming.active ?? active,
        text: applyGrown(text, streaming.text),
        reasoning: applyGrown(reasoning, streaming.reasoning),
      };
    }
    if (change.questions) this.questions = change.questions;
    if (change.steering) this.steering = change.steering;
    if (change.last_submitted !== undefined) this.lastSent = change.last_submitted;
    if (change.error !== undefined) this.turnError = change.error;
    if (change.plan) this.planItems = change.plan;
    if (change.attachments) this.attached = change.attachments;
    return true;
  }
}
