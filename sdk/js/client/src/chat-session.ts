import type { StreamEvent } from "./events.js";
import { logOptions, type MessageLogOptions } from "./message-log.js";
import { type MessageSteeringOptions, Steering, steeringOptions } from "./message-steering.js";
import type { ConnectionState, SessionSource } from "./session.js";
import {
  answerOf,
  type ConfirmationPolicy,
  decider,
  pendingOf,
  type ToolConfirmationResponse,
  type ToolConfirmationState,
} from "./tool-confirmations.js";
import type {
  Answer,
  Attachment,
  ChatMessage,
  ChatMode,
  ChildMessages,
  ChildThread,
  Outgoing,
  PendingLimit,
  PlanItem,
  Question,
  SavedChat,
  Sent,
  SteeringMode,
  TurnError,
  Waiting,
} from "./types.js";
import type { StreamingTextState } from "./view.js";

/** What a mode is derived from. */
export interface ChatModeInput {
  readonly isExecuting: boolean;
  readonly hasPendingConfirmation: boolean;
  /** The last turn did not complete. */
  readonly hasError: boolean;
}

/** Derives a front end's mode. */
export type ChatModeDeriver<Mode extends string = ChatMode> = (input: ChatModeInput) => Mode;

/** Questions come before a running turn, and that before idle. */
export function defaultDeriveMode(input: Omit<ChatModeInput, "hasError">): ChatMode {
  if (input.hasPendingConfirmation) return "confirming_tool";
  return input.isExecuting ? "streaming" : "idle";
}

/** The settings of a {@link ChatSession}. */
export interface ChatSessionOptions<Mode extends string = ChatMode>
  extends MessageSteeringOptions,
    Omit<MessageLogOptions, "subscribe" | "sessionId"> {
  /** Answers some questions for the person. */
  readonly confirmationPolicy?: ConfirmationPolicy;
  /** Replaces {@link defaultDeriveMode}. */
  readonly deriveMode?: ChatModeDeriver<Mode>;
  /** Called with each event before it is processed, those of children included. */
  readonly onEvent?: (event: StreamEvent, child?: ChildThread) => void;
  /** What can be attached to a message. Default: 10 images, or addresses of images and PDF files. */
  readonly attachments?: { readonly most: number; readonly types: readonly string[] };
}

/** What a chat shows at one moment. It is the same object until something changes, and so is each message in it. */
export interface ChatSessionState<Mode extends string = ChatMode> {
  readonly messages: readonly ChatMessage[];
  /** The messages of child agents, each a list of its own. */
  readonly children: readonly ChildMessages[];
  readonly chatMode: Mode;
  /** The oldest question that waits for the person, or `null`. */
  readonly toolConfirmation: ToolConfirmationState | null;
  /** All questions that wait for the person, oldest first. */
  readonly toolConfirmations: readonly ToolConfirmationState[];
  /** All questions that are not resolved, those included that this front end has answered. */
  readonly questions: readonly Question[];
  /** The text of the message that was sent last, until it is in `messages`. */
  readonly lastSubmitted: string | null;
  readonly lastSubmittedId: string | null;
  readonly queued: readonly Outgoing[];
  readonly sent: readonly Sent[];
  readonly waiting: readonly Waiting[];
  readonly isExecuting: boolean;
  readonly mode: SteeringMode;
  readonly streaming: StreamingTextState;
  /** Why the last turn did not complete, or `null`. That the server cannot be reached is in `connectionError`. */
  readonly error: TurnError | null;
  /** Whether the events of the session arrive: `waiting` while the connection is lost, `ended` where there will be none. */
  readonly connection: ConnectionState;
  /** Why they do not arrive, and what to do, or `null`: a {@link TidegateError} where the server refuses, else a {@link ConnectionError}. */
  readonly connectionError: Error | null;
  /** The limit that the turn has reached, and about which a person has to decide, or `null`. */
  readonly limit: PendingLimit | null;
  /** The last turn has no end, because the server ended before: `client.session(id).send({ command: "continue" })` continues it. */
  readonly isInterrupted: boolean;
  readonly plan: readonly PlanItem[];
  /** The attachments of the next message. */
  readonly attachments: readonly Attachment[];
}

/** A chat with one session: one subscription, and one notification for each event that changed something. */
export class ChatSession<Mode extends string = ChatMode> extends Steering<ChatSessionState<Mode>> {
  readonly #deriveMode: ChatModeDeriver<Mode>;
  readonly #onEvent: ChatSessionOptions<Mode>["onEvent"];

  constructor(client: SessionSource | null = null, options: ChatSessionOptions<Mode> = {}) {
    const { attachments } = options;
    const module = { kind: "chat", ...logOptions(options), ...steeringOptions(client, options), attachments };
    super(client, options, module, { transform: options.transform, decide: decider(options.confirmationPolicy) });
    this.#deriveMode = options.deriveMode ?? (defaultDeriveMode as ChatModeDeriver<string> as ChatModeDeriver<Mode>);
    this.#onEvent = options.onEvent;
  }

  get messages(): readonly ChatMessage[] {
    return this.state.messages;
  }

  get chatMode(): Mode {
    return this.state.chatMode;
  }

  get toolConfirmation(): ToolConfirmationState | null {
    return this.state.toolConfirmation;
  }

  get lastSubmitted(): string | null {
    return this.state.lastSubmitted;
  }

  get queued(): readonly Outgoing[] {
    return this.state.queued;
  }

  get isExecuting(): boolean {
    return this.state.isExecuting;
  }

  get mode(): SteeringMode {
    return this.state.mode;
  }

  /**
   * Answers a question: that with the id, or else the oldest one that waits; where none does, nothing happens. Throws a {@link RefusedError} where the
   * question with the id is not open any more, or this front end has answered it.
   */
  respondToConfirmation(response: ToolConfirmationResponse, id = this.toolConfirmation?.request.id): void {
    if (id !== undefined) this.answer(id, answerOf(response));
  }

  /** Answers the question with an id. Throws a {@link RefusedError} where it is not open any more, or this front end has answered it. */
  answer(id: string, answer: Answer): void {
    this.act("respond", { question: id, answer });
  }

  /** Reports that an answer was refused, where no client does it. */
  answerFailed(question: string, why: string): void {
    this.act("answer_failed", { question, why });
  }

  /** Removes all messages and the queue. */
  clearMessages(): void {
    this.act("clear", {});
  }

  /** Attaches something to the next message. Throws a {@link RefusedError} where there are too many, or its type is not allowed. */
  attach(attachment: Attachment): void {
    this.act("attach", attachment);
  }

  /** Removes the attachment at `index`, from 0. */
  detach(index: number): void {
    this.act("detach", { index });
  }

  /** What this chat has learnt from events, for another one. */
  save(): SavedChat {
    return this.act("save", {}) as SavedChat;
  }

  protected override get showsConnection(): boolean {
    return true;
  }

  protected override beforeEvent(event: StreamEvent, child?: ChildThread): void {
    this.#onEvent?.(event, child);
  }

  protected createSnapshot(): ChatSessionState<Mode> {
    const { view } = this;
    const { executing, mode, queued, sent, waiting = [] } = view.steering;
    const pending = pendingOf(view.questions, (id, answer) => this.answer(id, answer));
    const hasPendingConfirmation = pending.length > 0;
    return {
      messages: view.own.list,
      children: view.children,
      chatMode: this.#deriveMode({ isExecuting: executing, hasPendingConfirmation, hasError: view.turnError !== null }),
      toolConfirmation: pending[0] ?? null,
      toolConfirmations: pending,
      questions: view.questions,
      lastSubmitted: view.lastSent?.text ?? null,
      lastSubmittedId: view.lastSent?.id ?? null,
      queued,
      sent,
      waiting,
      isExecuting: executing,
      mode,
      streaming: view.streaming,
      error: view.turnError,
      connection: this.connection.state,
      connectionError: this.connection.error,
      limit: view.limit,
      isInterrupted: view.interrupted,
      plan: view.plan,
      attachments: view.attached,
    };
  }
}
