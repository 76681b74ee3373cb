import { applyGrown, type Output, type SteeringParts } from "./change.js";
import { isEvent, type StreamEvent } from "./events.js";
import { MessageStore, type MessageTransform } from "./message-store.js";
import type { Attachment, ChildMessages, ChildThread, PendingLimit, PlanItem, Question, TurnError } from "./types.js";

/** The text of the current answer as the user has seen it, without what is void. */
export interface StreamingTextState {
  readonly active: boolean;
  readonly text: string;
  readonly reasoning: string;
}

/** The state of a primitive, built from the changes that the module reports. */
export class View {
  readonly own: MessageStore;
  questions: readonly Question[] = [];
  steering: SteeringParts = { executing: false, mode: "steer", queued: [], sent: [] };
  streaming: StreamingTextState = { active: false, text: "", reasoning: "" };
  lastSent: { readonly id: string; readonly text: string } | null = null;
  turnError: TurnError | null = null;
  limit: PendingLimit | null = null;
  interrupted = false;
  plan: readonly PlanItem[] = [];
  attached: readonly Attachment[] = [];
  readonly #children: { readonly thread: ChildThread; readonly store: MessageStore }[] = [];
  readonly #transform: MessageTransform | undefined;

  constructor(transform: MessageTransform | undefined) {
    this.#transform = transform;
    this.own = new MessageStore(transform);
  }

  get children(): readonly ChildMessages[] {
    return this.#children.map(({ thread, store }) => ({ thread, messages: store.list }));
  }

  /** A delta that was added to the last block of the message at `index`, and nothing else: nearly every event. */
  add(event: StreamEvent, index: number): void {
    if (isEvent(event, "cognition_out_delta")) {
      this.streaming = { ...this.streaming, text: this.streaming.text + event.payload.text };
      this.own.add(index, event.payload.text);
    } else if (isEvent(event, "cognition_reasoning_delta")) {
      this.streaming = { ...this.streaming, reasoning: this.streaming.reasoning + event.payload.text };
      this.own.add(index, event.payload.text);
    }
  }

  /** Applies what an event or an action gave. Returns whether something changed. */
  apply(output: Output | undefined): boolean {
    const change = output?.change;
    if (!change) return output?.changed === true;
    const { messages, streaming } = change;
    if (messages?.own) this.own.apply(messages.own);
    if (messages?.cleared) this.#children.length = 0;
    for (const [index, thread, one] of messages?.children ?? []) {
      const child = (this.#children[index] ??= { thread, store: new MessageStore(this.#transform) });
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
    if (change.limit !== undefined) this.limit = change.limit;
    if (change.interrupted !== undefined) this.interrupted = change.interrupted;
    if (change.plan) this.plan = change.plan;
    if (change.attachments) this.attached = change.attachments;
    return true;
  }
}
