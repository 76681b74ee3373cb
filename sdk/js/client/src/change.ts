import type {
  Attachment,
  Block,
  ChatMessage,
  ChildThread,
  Command,
  Note,
  Outgoing,
  PendingLimit,
  PlanItem,
  Question,
  SavedChat,
  Receipt,
  Sent,
  SteeringMode,
  ToolEntry,
  TurnError,
  Waiting,
} from "./types.js";

/** How a block of a message changed: it is another one, or text was added and it is complete or not. */
export type BlockChange = { whole: Block } | { added: [text: string, complete: boolean] };

/** The parts of a message that changed. */
export interface MessagePart {
  len?: number;
  blocks?: [index: number, change: BlockChange][];
  complete?: boolean;
  partial?: string | null;
  extension?: string;
  calls_len?: number;
  calls?: [index: number, call: ToolEntry][];
  notes?: Note[];
}

export type MessageChange = { whole: ChatMessage } | { part: MessagePart } | { hidden: true };

export interface ThreadChange {
  len?: number;
  messages?: [index: number, change: MessageChange][];
}

export interface LogChange {
  own?: ThreadChange;
  children?: [index: number, thread: ChildThread, change: ThreadChange][];
  cleared?: true;
}

export type Grown = { added: string } | { whole: string };

export interface SteeringParts {
  readonly executing: boolean;
  readonly mode: SteeringMode;
  readonly queued: readonly Outgoing[];
  readonly sent: readonly Sent[];
  readonly waiting?: readonly Waiting[];
}

export interface ViewChange {
  messages?: LogChange;
  questions?: Question[];
  steering?: SteeringParts;
  streaming?: { active?: boolean; text?: Grown; reasoning?: Grown };
  last_submitted?: { id: string; text: string } | null;
  error?: TurnError | null;
  limit?: PendingLimit | null;
  interrupted?: boolean;
  plan?: PlanItem[];
  attachments?: Attachment[];
}

/** What an event or an action gave, as the module reports it. */
export interface Output {
  changed?: true;
  change?: ViewChange;
  asked?: string[];
  commands?: Command[];
  result?: string | Outgoing | Receipt | SavedChat;
  error?: string;
}

/** Applies a change to a message. What did not change is shared with the message before. */
export function applyPart(message: ChatMessage, part: MessagePart): ChatMessage {
  const next: { -readonly [Key in keyof ChatMessage]: ChatMessage[Key] } = { ...message };
  if (part.blocks || part.len !== undefined) next.blocks = applyBlocks(message.blocks, part);
  if (part.complete !== undefined) next.complete = part.complete;
  if (part.partial === null) delete next.partial;
  else if (part.partial !== undefined) next.partial = part.partial;
  if (part.extension !== undefined) next.extension = part.extension;
  if (part.calls || part.calls_len !== undefined) {
    const calls = resized(message.calls ?? [], part.calls_len);
    for (const [index, call] of part.calls ?? []) calls[index] = call;
    if (calls.length) next.calls = calls;
    else delete next.calls;
  }
  if (part.notes?.length) next.notes = part.notes;
  else if (part.notes) delete next.notes;
  return next;
}

function applyBlocks(before: readonly Block[], part: MessagePart): Block[] {
  const blocks = resized(before, part.len);
  for (const [index, change] of part.blocks ?? []) {
    const old = before[index];
    if ("whole" in change) blocks[index] = change.whole;
    else if (old) blocks[index] = { ...old, text: old.text + change.added[0], complete: change.added[1] };
  }
  return blocks;
}

function resized<T>(list: readonly T[], len: number | undefined): T[] {
  return len !== undefined && len < list.length ? list.slice(0, len) : list.slice();
}

/** Adds text to the last block of a message, which is what nearly every event does. */
export function applyDelta(message: ChatMessage, text: string): ChatMessage {
  const blocks = message.blocks.slice();
  const last = blocks[blocks.length - 1];
  if (last) blocks[blocks.length - 1] = { ...last, text: last.text + text };
  return { ...message, blocks };
}

export function applyGrown(text: string, change: Grown | undefined): string {
  if (!change) return text;
  return "added" in change ? text + change.added : change.whole;
}
