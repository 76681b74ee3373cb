// Generated from the schemas of Rust by generate.mjs.

/** A decision about a tool call. */
export type Answer =
  | {
      readonly decision: "approve";
    }
  | {
      readonly decision: "edit";
      /** The arguments as JSON. */
      readonly arguments: string;
    }
  | {
      readonly decision: "always";
    }
  | {
      readonly decision: "deny";
      /** The user's reason, for the model. */
      readonly reason?: string;
    };
/** The author of a message, as a front end shows it. */
export type Author = "user" | "assistant" | "host";
/** What a block contains. */
export type BlockKind = "text" | "reasoning";
/** What a chat is doing, unless a front end derives modes of its own. */
export type ChatMode = "idle" | "streaming" | "confirming_tool";
/** What is sent from the queue at once. */
export type FlushMode = "sequential" | "batched";
/** What became of a message. */
export type Receipt =
  | {
      readonly receipt: "queued";
    }
  | {
      readonly receipt: "sent";
    }
  | {
      readonly receipt: "delivered";
      /** The turn, from 1. */
      readonly turn: number;
      /** The step of the turn; 0: before the first. */
      readonly step: number;
      /** The number of the event. */
      readonly seq: number;
    }
  | {
      readonly receipt: "removed";
    }
  | {
      readonly receipt: "returned";
    };
/** When a message becomes visible. */
export type RenderMode = "at_end" | "message" | "block" | "streaming";
/** What `MessageSteering::submit` does while a turn runs. */
export type SteeringMode = "steer" | "queue";
/** Where a tool call is. */
export type ToolStatus = "proposed" | "asking" | "running" | "done" | "failed" | "not_run" | "cancelled";
/** How a message was handed over. */
export type Way = "prompt" | "steer" | "interrupt" | "queue";

/** One decoded argument. */
export interface Argument {
  /** The argument's key. */
  readonly name: string;
  /** A string as it is, anything else as JSON. */
  readonly value: string;
}
/** A file or an address that goes with a message. */
export interface Attachment {
  /** The name that the user sees. */
  readonly name: string;
  /** Its media type, as `image/png`. */
  readonly media_type: string;
  /** Where the content is: an address (`https:`, `data:`), or base64. */
  readonly source: string;
}
/** A contiguous part of a message. */
export interface Block {
  /** What it contains. */
  readonly kind: BlockKind;
  /** What was shown of it. */
  readonly text: string;
  /** Nothing is added to it any more. */
  readonly complete: boolean;
  /**
   * The cause, where it was shown and does not count any more: a rule stopped the answer, or the request was repeated. A front end
   * removes it or strikes it through; the valid text continues after it.
   */
  readonly void?: string;
}
/** An image that the user has sent. Its data are shared with the conversation. */
export interface ChatImage {
  /** Its media type, such as `image/png`. */
  readonly media_type: string;
  /** Its file in base64. */
  readonly data: string;
}
/** One message of a log. Two versions of it share what is the same in both, so that comparing them costs little. */
export interface ChatMessage {
  /** Stays the same for the life of the message. */
  readonly id: string;
  /** Who wrote it. */
  readonly author: Author;
  /** The turn of the thread, from 1; 0: before the first. */
  readonly turn: number;
  /** The step of the turn, from 1; 0: before the first. */
  readonly step: number;
  /** When it began, in milliseconds since 1970-01-01 UTC. */
  readonly at_ms: number;
  /** Text and reasoning in the order in which they were shown. */
  readonly blocks: readonly Block[];
  /** The images of an input. */
  readonly images?: readonly ChatImage[];
  /** Tool calls, in the model's order. */
  readonly calls?: readonly ToolEntry[];
  /** No text follows. Tool calls of a complete message can still run. */
  readonly complete: boolean;
  /** Of a message that did not come to its end: why. What was shown of it stays. */
  readonly partial?: string;
  /** Of an input: the id that it was handed over with. */
  readonly input?: string;
  /** Input that arrived while the turn ran. */
  readonly steered?: boolean;
  /** The extension that answered in the model's place. */
  readonly extension?: string;
  /** What extensions noted about the answer. */
  readonly notes?: readonly Note[];
}
/** The thread of a child agent. Its events change nothing of its parent. */
export interface ChildThread {
  /** The child's thread id. */
  readonly id: string;
  /** The agent's name. */
  readonly agent: string;
}
/** What an extension noted about an answer. */
export interface Note {
  /** The extension's id. */
  readonly extension: string;
  /** The key, chosen by the extension. */
  readonly key: string;
  /** The value, any JSON. */
  readonly value: unknown;
}
/** A message of the user on its way to the model. */
export interface Outgoing {
  /** Names it in receipts. */
  readonly id: string;
  /** What the user wrote. */
  readonly text: string;
  /** What goes with it. */
  readonly attachments?: readonly Attachment[];
}
/** A request for a higher limit, about which nobody has decided. */
export interface PendingLimit {
  /** Its id, to decide about it. */
  readonly id: string;
  /** `turns_exceeded`, `steps_exceeded` and so on. */
  readonly code: string;
  /** What is spent: a count, US dollars or seconds. */
  readonly current: number;
  /** The limit so far. */
  readonly max: number;
  /** The limit that an approval sets, unless it sets another one. */
  readonly proposed: number;
  /** All of it in one sentence. */
  readonly message: string;
  /** The turn that waits. */
  readonly turn: number;
  /** Its last step; 0: it has none. */
  readonly step: number;
}
/** An entry of the plan that the model has shown. */
export interface PlanItem {
  /** What is to be done, in the words of the model. */
  readonly content: string;
  /** `pending`, `in_progress` or `completed`. */
  readonly status: string;
}
/** What a person is shown of a call: `Preview`, shared between states. */
export interface Preview {
  /** The decoded arguments, each whole. */
  readonly arguments: readonly Argument[];
  /** The change to a file as a unified diff. */
  readonly diff?: string;
  /** Facts that neither the arguments nor the diff show. */
  readonly notes: readonly string[];
}
/** A question about a tool call. */
export interface Question {
  /** What an answer names. */
  readonly id: string;
  /** The id of the call. */
  readonly call: string;
  /** The tool's name. */
  readonly tool: string;
  /** The arguments as the model wrote them. */
  readonly arguments: string;
  /** Which setting asks. */
  readonly reason: string;
  /** What the answer `always` would allow; absent where each such call is asked about. */
  readonly always?: string;
  /** When the question is answered by itself, in milliseconds since 1970-01-01 UTC; absent where it waits. */
  readonly expires_ms?: number;
  /** What the person is shown of the call. The strings are exact: a front end escapes what its surface would hide or act on. */
  readonly preview: Preview;
  /** The turn, from 1. */
  readonly turn: number;
  /** The step of the turn, from 1. */
  readonly step: number;
  /** When it was asked, in milliseconds since 1970-01-01 UTC. */
  readonly at_ms: number;
  /** The child agent whose call it is; absent for the session's own. */
  readonly child?: ChildThread;
  /** The answer that this front end has sent, until the session reports that the question is resolved. */
  readonly answer?: Answer;
  /** Why the last answer was refused, or not delivered. */
  readonly error?: string;
  /** Why the policy did not decide about it. */
  readonly policy_error?: string;
}
/** A message that was handed over and is not delivered. */
export interface Sent {
  /** The message as it was handed over. */
  readonly message: Outgoing;
  /** How it was handed over. */
  readonly way: Way;
  /** The text that the session was asked to replace it with. */
  readonly edited?: string;
}
/** A tool call of a message. */
export interface ToolEntry {
  /** The call's id, unique within its message and not in a thread. */
  readonly call: string;
  /** The tool's name. */
  readonly tool: string;
  /** The arguments as the model wrote them. From records of calls that were never listed by their answer, the same JSON value. */
  readonly arguments: string;
  /** Where the call is. */
  readonly status: ToolStatus;
  /** One line: the last progress of a running tool, or the first line of the result, at most 120 bytes. */
  readonly summary?: string;
  /** How much is done, from 0 to 100, where the tool knows. */
  readonly percent?: number;
  /** What the tool gave, or why it failed or did not run. */
  readonly output?: string;
  /** The change that it made, as a unified diff. */
  readonly diff?: string;
  /** How long it ran, in milliseconds; absent where it did not. */
  readonly duration_ms?: number;
  /** How long a person was waited for, in milliseconds; absent where nobody was asked. */
  readonly waited_ms?: number;
  /** When it started, in milliseconds since 1970-01-01 UTC: while it runs, and where it was cancelled then. */
  readonly started_ms?: number;
}
/** Why the last turn did not complete. A cancelled turn is no error. */
export interface TurnError {
  /** `rejected`, `stopped_by_rule`, `failed`, `step_limit`, `no_progress` or `suspended`. */
  readonly status: string;
  /** The error in one sentence, for the person. */
  readonly message: string;
}
/** An input that waits in the session. */
export interface Waiting {
  /** Names it. A message of this front end has the id here that it has in receipts. */
  readonly id: string;
  /** How it is going to be delivered. */
  readonly way: Way;
  /** Its text as it is now. */
  readonly text: string;
}
