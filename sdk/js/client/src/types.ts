/** The author of a message, as a front end shows it. */
export type Author = "user" | "assistant" | "host";

/** A contiguous part of a message. */
export interface Block {
  readonly kind: "text" | "reasoning";
  /** What was shown of it. */
  readonly text: string;
  /** Nothing is added to it any more. */
  readonly complete: boolean;
  /** The cause, where it was shown and does not count any more: remove it, or strike it through. */
  readonly void?: string;
}

/** Where a tool call is. */
export type ToolStatus = "proposed" | "asking" | "running" | "done" | "failed" | "not_run" | "cancelled";

/** A tool call of a message. */
export interface ToolEntry {
  /** Unique within its message, and not in a thread. */
  readonly call: string;
  readonly tool: string;
  /** The arguments as JSON. */
  readonly arguments: string;
  readonly status: ToolStatus;
  /** One line: the last progress of a running tool, or the first line of the result. */
  readonly summary?: string;
  /** How much is done, from 0 to 100, where the tool knows. */
  readonly percent?: number;
  readonly output?: string;
  /** The change that it made, as a unified diff. */
  readonly diff?: string;
  /** How long it ran, in milliseconds; absent where it did not. */
  readonly duration_ms?: number;
  /** How long a person was waited for, in milliseconds. */
  readonly waited_ms?: number;
  /** When it started, in milliseconds since 1970-01-01 UTC: while it runs, and where it was cancelled then. */
  readonly started_ms?: number;
}

/** An image that the user has sent, as base64. */
export interface ChatImage {
  readonly media_type: string;
  readonly data: string;
}

/** What an extension noted about an answer. */
export interface Note {
  readonly extension: string;
  readonly key: string;
  readonly value: unknown;
}

/** One message of a log. A message that did not change is the same object (`===`) in the next state. */
export interface ChatMessage {
  /** Stays the same for the life of the message. */
  readonly id: string;
  readonly author: Author;
  /** The turn of the thread, from 1; 0: before the first. */
  readonly turn: number;
  /** The step of the turn, from 1; 0: before the first. */
  readonly step: number;
  /** When it began, in milliseconds since 1970-01-01 UTC. */
  readonly at_ms: number;
  readonly blocks: readonly Block[];
  readonly images?: readonly ChatImage[];
  readonly calls?: readonly ToolEntry[];
  /** No text follows. Tool calls of a complete message can still run. */
  readonly complete: boolean;
  /** Of a message that did not come to its end: why. */
  readonly partial?: string;
  /** Of an input: the id that it was handed over with. */
  readonly input?: string;
  /** Input that arrived while the turn ran. */
  readonly steered?: boolean;
  /** The extension that answered in the model's place. */
  readonly extension?: string;
  readonly notes?: readonly Note[];
}

/** The thread of a child agent. */
export interface ChildThread {
  readonly id: string;
  readonly agent: string;
}

/** The messages of a child agent. */
export interface ChildMessages {
  readonly thread: ChildThread;
  readonly messages: readonly ChatMessage[];
}

/** What the person is shown of a call that is asked about. */
export interface Preview {
  readonly arguments?: readonly { readonly name: string; readonly value: string }[];
  readonly diff?: string;
  readonly notes?: readonly string[];
}

/** A decision about a tool call. */
export type Answer =
  | { readonly decision: "approve" }
  | { readonly decision: "always" }
  | { readonly decision: "deny"; readonly reason?: string }
  | { readonly decision: "edit"; readonly arguments: string };

/** A question about a tool call. */
export interface Question {
  readonly id: string;
  readonly call: string;
  readonly tool: string;
  /** The arguments as JSON. */
  readonly arguments: string;
  /** Which setting asks. */
  readonly reason: string;
  /** What the answer `always` would allow; absent where each such call is asked about. */
  readonly always?: string;
  /** When the question is answered by itself, in milliseconds since 1970-01-01 UTC; absent where it waits. */
  readonly expires_ms?: number;
  readonly preview: Preview;
  readonly turn: number;
  readonly step: number;
  readonly at_ms: number;
  /** The child agent that asks; absent for the session itself. */
  readonly child?: ChildThread;
  /** The answer that this front end has given; absent while the question is open. */
  readonly answer?: Answer;
  /** Why the last answer was refused or not delivered. */
  readonly error?: string;
  /** Why the policy did not decide. */
  readonly policy_error?: string;
}

/** A file or an address that goes with a message. `source` is an address, or base64. */
export interface Attachment {
  readonly name: string;
  readonly media_type: string;
  readonly source: string;
}

/** A message of the user on its way to the model. */
export interface Outgoing {
  readonly id: string;
  readonly text: string;
  readonly attachments?: readonly Attachment[];
}

/** What became of a message of the user. */
export type Receipt =
  | { readonly receipt: "queued" }
  | { readonly receipt: "sent" }
  | { readonly receipt: "delivered"; readonly turn: number; readonly step: number; readonly seq: number }
  | { readonly receipt: "removed" }
  | { readonly receipt: "returned" };

/** How a message is delivered. */
export type Way = "prompt" | "steer" | "interrupt" | "queue";

/** A message that was handed over and is not delivered yet. */
export interface Sent {
  readonly message: Outgoing;
  readonly way: Way;
  readonly edited?: string;
}

/** A message that waits in the session, from whichever front end. */
export interface Waiting {
  readonly id: string;
  readonly way: Way;
  readonly text: string;
}

/** What `submit` does while a turn runs. */
export type SteeringMode = "steer" | "queue";
/** What is sent from the queue: one message a turn, or all as one input. */
export type FlushMode = "sequential" | "batched";
/** When a message becomes visible. */
export type RenderMode = "at_end" | "message" | "block" | "streaming";
/** What a chat is doing, unless a front end derives modes of its own. */
export type ChatMode = "idle" | "streaming" | "confirming_tool";

/** Why the last turn did not complete. */
export interface TurnError {
  readonly status: string;
  readonly message: string;
}

/** An entry of the plan that the model has shown. */
export interface PlanItem {
  readonly content: string;
  readonly status: string;
}

/** Something to do with the session, as the server takes it. */
export type Command =
  | { readonly command: "prompt"; readonly messages: readonly Outgoing[] }
  | { readonly command: "steer" | "interrupt" | "queue" | "edit"; readonly message: Outgoing }
  | { readonly command: "flush" | "cancel" | "continue"; readonly id?: string }
  | { readonly command: "remove" | "take_back"; readonly id: string }
  | {
      readonly command: "answer";
      readonly question: string;
      readonly call: string;
      readonly child?: ChildThread;
      readonly answer: Answer;
    }
  | { readonly command: "decide_limit"; readonly request: string; readonly decision: LimitDecision };

/** A decision about a limit that a turn has reached. */
export type LimitDecision =
  | { readonly decision: "approve"; readonly max?: number }
  | { readonly decision: "deny"; readonly reason?: string };

/** What a chat has learnt from events, for a front end that reconnects. Opaque. */
export type SavedChat = { readonly next_seq: number } & { readonly [key: string]: unknown };

/** Undoes a subscription. */
export type Unsubscribe = () => void;
