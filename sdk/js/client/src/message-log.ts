import type { MessageTransform } from "./message-store.js";
import { Primitive, type PrimitiveOptions } from "./primitive.js";
import type { SessionSource } from "./session.js";
import type { ChatMessage, ChildMessages, RenderMode } from "./types.js";

/** The settings of a {@link MessageLog}. */
export interface MessageLogOptions extends PrimitiveOptions {
  /** Messages from before the first event. Events about a message with one of their ids replace it. */
  readonly initialMessages?: readonly Partial<ChatMessage>[];
  /** Replaces the default, which shows each message as it is. */
  readonly transform?: MessageTransform;
  /** When a message becomes visible. Default: `streaming`. */
  readonly renderMode?: RenderMode;
}

/** What a log shows. It is the same object until something changes, and so is each message in it. */
export interface MessageLogState {
  readonly messages: readonly ChatMessage[];
  /** The messages of child agents, each a list of its own. */
  readonly children: readonly ChildMessages[];
}

/** The messages of a session and of its children, from their events. */
export class MessageLog extends Primitive<MessageLogState> {
  constructor(client: SessionSource | null = null, options: MessageLogOptions = {}) {
    super(client, options, { kind: "log", ...logOptions(options) }, { transform: options.transform });
  }

  get messages(): readonly ChatMessage[] {
    return this.state.messages;
  }

  /** Removes all messages. */
  clear(): void {
    this.act("clear", {});
  }

  protected createSnapshot(): MessageLogState {
    return { messages: this.view.own.list, children: this.view.children };
  }
}

/** The settings of a log, as the module takes them. */
export function logOptions(options: MessageLogOptions): object {
  return { render_mode: options.renderMode ?? "streaming", initial_messages: options.initialMessages ?? [] };
}
