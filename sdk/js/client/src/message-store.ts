import { applyDelta, applyPart, type ThreadChange } from "./change.js";
import type { ChatMessage } from "./types.js";

/** Makes the messages that are shown of the one that events gave: one, several, or none. It must give the same for the same message. */
export type MessageTransform = (message: ChatMessage) => ChatMessage | readonly ChatMessage[] | null | undefined;

/** The messages of one thread. Changing one takes the same time however many there are; the list is made where it is read. */
export class MessageStore {
  readonly #messages: (ChatMessage | undefined)[] = [];
  readonly #transform: MessageTransform | undefined;
  readonly #made = new WeakMap<ChatMessage, readonly ChatMessage[]>();
  #list: readonly ChatMessage[] | undefined = [];
  #hidden = 0;

  constructor(transform: MessageTransform | undefined) {
    this.#transform = transform;
  }

  /** The visible messages, the oldest first. The same array until one changes. */
  get list(): readonly ChatMessage[] {
    return (this.#list ??= this.#visible());
  }

  apply(change: ThreadChange): void {
    this.#list = undefined;
    if (change.len !== undefined) this.#resize(change.len);
    for (const [index, one] of change.messages ?? []) {
      const old = this.#messages[index];
      if ("whole" in one) this.#set(index, one.whole);
      else if ("hidden" in one) this.#set(index, undefined);
      else if (old) this.#set(index, applyPart(old, one.part));
    }
  }

  add(index: number, text: string): void {
    const old = this.#messages[index];
    if (!old) return;
    this.#list = undefined;
    this.#messages[index] = applyDelta(old, text);
  }

  #set(index: number, message: ChatMessage | undefined): void {
    this.#hidden += Number(!message) - Number(!this.#messages[index]);
    this.#messages[index] = message;
  }

  #resize(len: number): void {
    while (this.#messages.length < len) this.#hidden += this.#messages.push(undefined) ? 1 : 0;
    for (const gone of this.#messages.splice(len)) this.#hidden -= Number(!gone);
  }

  #visible(): readonly ChatMessage[] {
    const { length } = this.#messages;
    if (!this.#transform && this.#hidden === 0) return this.#messages.slice(0, length) as ChatMessage[];
    const visible = this.#messages.filter((message) => message !== undefined);
    return this.#transform ? visible.flatMap((message) => this.#parts(message)) : visible;
  }

  /** What the transform makes of a message, once for each version of it. */
  #parts(message: ChatMessage): readonly ChatMessage[] {
    let parts = this.#made.get(message);
    if (!parts) {
      const made = this.#transform?.(message) ?? [];
      parts = ownIds(Array.isArray(made) ? (made as readonly ChatMessage[]) : [made as ChatMessage]);
      this.#made.set(message, parts);
    }
    return parts;
  }
}

/** Gives each of several messages an id of its own: the second of one id is `ID/2`. */
function ownIds(made: readonly ChatMessage[]): readonly ChatMessage[] {
  if (made.length < 2) return made;
  const seen = new Set<string>();
  return made.map((message, index) => {
    const id = seen.has(message.id) ? `${message.id}/${index + 1}` : message.id;
    seen.add(id);
    return id === message.id ? message : { ...message, id };
  });
}
