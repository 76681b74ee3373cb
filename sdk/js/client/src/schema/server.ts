// Generated from the schemas of Rust by generate.mjs.

/** A decision about a tool call. */
export type AnswerBody =
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
      /** The reason, for the model. */
      readonly reason?: string;
    };
/** Who wrote a message, which is not the same as the role it is sent under. */
export type Author =
  | "user"
  | "model"
  | "host"
  | {
      readonly extension: string;
    }
  | {
      readonly addition: {
        /** The extension that declares it. */
        readonly extension_id: string;
        /** Its index among the additions that the extension declares, from 0. */
        readonly index: number;
      };
    };
/** Something to do in a session. */
export type CommandBody =
  | {
      readonly command: "prompt";
      /** The input of the turn. */
      readonly messages: readonly MessageBody[];
    }
  | {
      readonly command: "steer";
      /** The message, under an id of its own. */
      readonly message: MessageBody;
    }
  | {
      readonly command: "interrupt";
      /** The message, under an id of its own. */
      readonly message: MessageBody;
    }
  | {
      readonly command: "queue";
      /** The message, under an id of its own. */
      readonly message: MessageBody;
    }
  | {
      readonly command: "flush";
      /** Chosen by the client: the same one again does nothing. */
      readonly id?: string;
    }
  | {
      readonly command: "edit";
      /** The message with its new text. */
      readonly message: MessageBody;
    }
  | {
      readonly command: "remove";
      /** The id of the message. */
      readonly id: string;
    }
  | {
      readonly command: "take_back";
      /** The id of the message. */
      readonly id: string;
    }
  | {
      readonly command: "answer";
      /** The id of the question. */
      readonly question: string;
      /** The id of the call. */
      readonly call?: string;
      /** The child agent that asks. */
      readonly child?: ChildBody;
      /** The decision of the user. */
      readonly answer: AnswerBody;
    }
  | {
      readonly command: "cancel";
      /** Chosen by the client: the same one again does nothing. */
      readonly id?: string;
    }
  | {
      readonly command: "continue";
      /** Chosen by the client: the same one again does nothing. */
      readonly id?: string;
    }
  | {
      readonly command: "decide_limit";
      /** The id of the request. */
      readonly request: string;
      /** The decision of the user. */
      readonly decision: LimitBody;
    };
/** A decision about a request for a higher limit. */
export type LimitBody =
  | {
      readonly decision: "approve";
      /** The new limit. Default: the proposed one. */
      readonly max?: number;
    }
  | {
      readonly decision: "deny";
      /** The reason, for the record. */
      readonly reason?: string;
    };
/** One part of a message. */
export type PartRecord =
  | {
      readonly kind: "text";
      /** The text of this part. */
      readonly text: string;
    }
  | {
      readonly kind: "image";
      /** Its media type, such as `image/png`. */
      readonly media_type: string;
      /** Its file in base64. */
      readonly data: string;
    }
  | {
      readonly kind: "thinking";
      /** The text; may be empty where the provider hides it. */
      readonly text: string;
      /** Opaque data that the provider requires back. */
      readonly signature?: string;
      /** The provider gave the signature instead of words. */
      readonly redacted?: boolean;
    }
  | {
      readonly kind: "tool_call";
      /** Pairs it with its result. */
      readonly call_id: string;
      /** The tool's name. */
      readonly tool: string;
      /** The arguments, exactly as the model wrote them. */
      readonly arguments: string;
    }
  | {
      readonly kind: "tool_result";
      /** The call that it answers. */
      readonly call_id: string;
      /** Blocks of text. */
      readonly content: readonly string[];
      /** The call failed. */
      readonly is_error: boolean;
    };
/** What became of a message. */
export type ReceiptBody = {
  /** The id of the message. */
  readonly id: string;
} & (
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
    }
);
/** What a session is doing. */
export type SessionState = "idle" | "running" | "waiting" | "interrupted";
/**
 * One line of the shown stream: as a `Record`, of the same types, without what was not shown.
 *
 * Reading one ignores the fields that it does not have, so that nothing else of a record is in the line that is read.
 */
export type Shown = {
  /** The number of the event in the thread. Events of which nothing was shown leave gaps. */
  readonly seq: number;
  /** Milliseconds since 1970-01-01 UTC. */
  readonly ts: number;
  /** The session's id. */
  readonly thread_id: string;
  /** The turn, from 1; 0 before the first. */
  readonly turn: number;
  /** The step in the turn, from 1; 0 before the first. */
  readonly step: number;
  /** The attempt in the step, from 1; 0 before the first. */
  readonly attempt: number;
} & (
  | {
      readonly type: "thread_started";
      readonly payload: ThreadStarted;
    }
  | {
      readonly type: "thread_resumed";
      readonly payload: ThreadResumed;
    }
  | {
      readonly type: "thread_suspended";
      readonly payload: ThreadSuspended;
    }
  | {
      readonly type: "thread_completed";
      readonly payload: ThreadCompleted;
    }
  | {
      readonly type: "thread_error";
      readonly payload: ThreadError;
    }
  | {
      readonly type: "thread_cancelled";
      readonly payload: ThreadCancelled;
    }
  | {
      readonly type: "turn_start";
      readonly payload: Empty;
    }
  | {
      readonly type: "input_withdrawn";
      readonly payload: InputWithdrawn;
    }
  | {
      readonly type: "turn_finish";
      readonly payload: TurnFinish;
    }
  | {
      readonly type: "step_start";
      readonly payload: StepStart;
    }
  | {
      readonly type: "step_finish";
      readonly payload: StepFinish;
    }
  | {
      readonly type: "cognition_out_delta";
      readonly payload: CognitionOutDelta;
    }
  | {
      readonly type: "cognition_reasoning_delta";
      readonly payload: CognitionReasoningDelta;
    }
  | {
      readonly type: "tool_call_start";
      readonly payload: ToolCallStart;
    }
  | {
      readonly type: "tool_call_progress";
      readonly payload: ToolCallProgress;
    }
  | {
      readonly type: "tool_confirmation_requested";
      readonly payload: ToolConfirmationRequested;
    }
  | {
      readonly type: "tool_confirmation_resolved";
      readonly payload: ToolConfirmationResolved;
    }
  | {
      readonly type: "plan_updated";
      readonly payload: PlanUpdated;
    }
  | {
      readonly type: "error_classified";
      readonly payload: ErrorClassified;
    }
  | {
      readonly type: "retry_scheduled";
      readonly payload: RetryScheduled;
    }
  | {
      readonly type: "retry_succeeded";
      readonly payload: RetrySucceeded;
    }
  | {
      readonly type: "limit_escalation_requested";
      readonly payload: LimitEscalationRequested;
    }
  | {
      readonly type: "limit_escalation_resolved";
      readonly payload: LimitEscalationResolved;
    }
  | {
      readonly type: "rule_hold_released";
      readonly payload: RuleHoldReleased;
    }
  | {
      readonly type: "rule_held";
      readonly payload: RuleHeld;
    }
  | {
      readonly type: "ttsr_rearmed";
      readonly payload: TtsrRearmed;
    }
  | {
      readonly type: "rules_reloaded";
      readonly payload: RulesReloaded;
    }
  | {
      readonly type: "context_compaction_start";
      readonly payload: ContextCompactionStart;
    }
  | {
      readonly type: "child_thread_started";
      readonly payload: ChildThreadStarted;
    }
  | {
      readonly type: "extension_registered";
      readonly payload: ExtensionRegistered;
    }
  | {
      readonly type: "extension_unregistered";
      readonly payload: ExtensionUnregistered;
    }
  | {
      readonly type: "extension_prompt";
      readonly payload: ExtensionPrompt;
    }
  | {
      readonly type: "state_lost";
      readonly payload: Notice;
    }
  | {
      readonly type: "journal_failed";
      readonly payload: JournalFailed;
    }
  | {
      readonly type: "notice";
      readonly payload: Notice;
    }
  | {
      readonly type: "input_received";
      readonly payload: MessagePayload;
    }
  | {
      readonly type: "input_edited";
      readonly payload: InputEdited;
    }
  | {
      readonly type: "steering_message";
      readonly payload: MessagePayload;
    }
  | {
      readonly type: "input_queued";
      readonly payload: InputQueued;
    }
  | {
      readonly type: "cognition_out";
      readonly payload: ShownAnswer;
    }
  | {
      readonly type: "tool_call_result";
      readonly payload: ShownToolResult;
    }
  | {
      readonly type: "rule_fired";
      readonly payload: ShownMatch;
    }
  | {
      readonly type: "ttsr_injection";
      readonly payload: ShownInjection;
    }
  | {
      readonly type: "history_replaced";
      readonly payload: ShownReplacement;
    }
  | {
      readonly type: "context_compaction_end";
      readonly payload: ShownCompaction;
    }
  | {
      readonly type: "child_thread_failed";
      readonly payload: ShownChildFailure;
    }
  | {
      readonly type: "extension_callback";
      readonly payload: ShownCallback;
    }
  | {
      readonly type: "extension_tool";
      readonly payload: ShownTool;
    }
  | {
      readonly type: "extension_breaker";
      readonly payload: ShownBreaker;
    }
  | {
      readonly type: "extension_withheld";
      readonly payload: ShownWithheld;
    }
  | {
      readonly type: "schema_violation";
      readonly payload: ShownViolation;
    }
);

/** One decoded argument. */
export interface Argument {
  /** The key of the argument. */
  readonly name: string;
  /** A string as it is, anything else as JSON. */
  readonly value: string;
}
/** A file or an address that goes with a message. */
export interface AttachmentBody {
  /** The name that the user sees. */
  readonly name: string;
  /** Its media type, such as `image/png`. */
  readonly media_type: string;
  /** An address, or the content in base64. */
  readonly source: string;
}
/** What counts for the limits of a thread so far: that of its children included, estimated where a provider did not count. */
export interface Charged {
  /** Tokens of prompts and answers. */
  readonly tokens: number;
  /** US dollars, as far as prices are known. */
  readonly spend: number;
  /** Child threads that were started. */
  readonly spawns: number;
}
/** A child agent, as questions name it. */
export interface ChildBody {
  /** The thread of the child. */
  readonly id: string;
  /** The name of the agent. */
  readonly agent: string;
}
/** The payload of `child_thread_started`. */
export interface ChildThreadStarted {
  /** The child's thread: the id of its session. */
  readonly child_thread_id: string;
  /** What runs there: the agent's name. */
  readonly child_directive: string;
  /** The thread that started it. */
  readonly parent_thread_id: string;
  /** The id of the tool call whose result ends the child. */
  readonly call_id?: string;
}
/** The payload of `cognition_out_delta`. */
export interface CognitionOutDelta {
  /** The text that was shown. */
  readonly text: string;
  /** Its number within the attempt, from 0. */
  readonly chunk_index: number;
  /** The answer is complete: no delta of it follows. Absent otherwise. */
  readonly is_final?: boolean;
}
/** The payload of `cognition_reasoning_delta`. */
export interface CognitionReasoningDelta {
  /** The text that was shown. */
  readonly text: string;
}
/** The payload of `context_compaction_start`. */
export interface ContextCompactionStart {
  /**
   * `context`: the conversation fills the configured share of the model's context; `overflow`: the provider has refused a request
   * because of its size.
   */
  readonly triggered_by: string;
  /**
   * `shorten`: results and images are left out; `summary`: the model summarises; `drop`: the oldest messages are left out. Absent in
   * records of earlier versions, which only summarise.
   */
  readonly method?: string;
  /** The share that is filled, from 0. */
  readonly pressure_ratio: number;
  /** Tokens of the next prompt. */
  readonly used_tokens: number;
  /** Tokens that the model takes, prompt and answer together. */
  readonly context_tokens?: number;
}
/** What a thread took. */
export interface Cost {
  /** Turns, however they ended. */
  readonly turns: number;
  /** Tokens of prompts and answers, as far as providers report them. */
  readonly tokens?: number;
  /** US dollars; absent where the cost of any request is not known. */
  readonly spend?: number;
  /** Seconds since it started. */
  readonly duration_seconds: number;
}
/** The payload of an event that has nothing to add to its type. */
export interface Empty {}
/** The payload of `error_classified`. */
export interface ErrorClassified {
  /** The provider's word, or the HTTP status, or `unknown`. */
  readonly error_code: string;
  /** The class of the error. */
  readonly category: string;
  /** Whether errors of the class are retried. */
  readonly retryable: boolean;
  /**
   * `message`, the error in one sentence; as far as they are known, `provider`, `status` (of HTTP), `kind` (where the request
   * failed), `type` (the provider's), and `pattern`, the entry of `errors` that decided about the class.
   */
  readonly metadata: unknown;
}
/** The payload of `extension_prompt`. */
export interface ExtensionPrompt {
  /** The id of the extension. */
  readonly extension_id: string;
  /** Another text of it was shown in the workspace before. */
  readonly changed: boolean;
  /** Names the texts. */
  readonly digest: string;
  /** What the model reads of it. */
  readonly texts: readonly PromptText[];
}
/** The payload of `extension_registered`. */
export interface ExtensionRegistered {
  /** The id of the extension. */
  readonly extension_id: string;
  /** The version of the extension. */
  readonly version: string;
  /** `register`, `enable` or `reload`. */
  readonly action: string;
  /** What it registered. */
  readonly callbacks: readonly RegisteredCallback[];
}
/** The payload of `extension_unregistered`. */
export interface ExtensionUnregistered {
  /** The id of the extension. */
  readonly extension_id: string;
  /** `unregister` or `disable`. */
  readonly action: string;
  /** Why it was removed. */
  readonly reason: string;
}
/** The payload of `input_edited`. */
export interface InputEdited {
  /** The id of the input. */
  readonly id: string;
  /** Its text from now on. */
  readonly text: string;
  /** `true` where its message is not shown to the user. */
  readonly hidden?: boolean;
}
/** The payload of `input_queued`. */
export interface InputQueued {
  /** The id of the input. */
  readonly id: string;
  /** How it is going to be delivered: `prompt`, `queue`, `steer` or `interrupt`. */
  readonly way: string;
  /** The text, joined. */
  readonly text: string;
  /** `user`, as a rule. */
  readonly role: string;
  /** Not shown to the user. */
  readonly hidden: boolean;
  /** Who wrote it; absent for the user. */
  readonly author?: Author;
  /** The parts, where the message is not one part of text. */
  readonly parts?: readonly PartRecord[];
}
/** The payload of `input_withdrawn`. */
export interface InputWithdrawn {
  /** The id of the input. */
  readonly id: string;
  /** `removed` or `returned`. */
  readonly receipt: string;
}
/** The payload of `journal_failed`. */
export interface JournalFailed {
  /** Why, and the remedy. */
  readonly message: string;
  /** The number of the last event that is known to be on disk. */
  readonly recorded?: number;
}
/** The payload of `limit_escalation_requested`. */
export interface LimitEscalationRequested {
  /**
   * `turns_exceeded`, `steps_exceeded`, `tokens_exceeded`, `spend_exceeded`, `spawns_exceeded`, `depth_exceeded` or
   * `duration_exceeded`.
   */
  readonly limit_code: string;
  /** What is spent: a count, US dollars or seconds. */
  readonly current_value: number;
  /** The limit so far. */
  readonly current_max: number;
  /** The limit that an approval sets, unless it sets another one. */
  readonly proposed_max: number;
  /** All of it in one sentence. */
  readonly message: string;
  /** The id of the request, to decide about it. */
  readonly approval_request_id: string;
}
/** The payload of `limit_escalation_resolved`. */
export interface LimitEscalationResolved {
  /** The id of the request. */
  readonly approval_request_id: string;
  /** The code of the limit, as in the request. */
  readonly limit_code: string;
  /** `approved`, `denied` or `timed_out`. */
  readonly decision: string;
  /** Of an approval: the limit from now on. */
  readonly new_max?: number;
  /** Of a denial: why. */
  readonly reason?: string;
  /** Who has decided; empty where nobody has. */
  readonly decided_by: string;
}
/** A message of the user. */
export interface MessageBody {
  /** Chosen by the client, and unique in the session: a message is taken once. */
  readonly id: string;
  /** What the user wrote. */
  readonly text: string;
  /** What goes with it. */
  readonly attachments?: readonly AttachmentBody[];
}
/** The payload of `input_received`, `cognition_in` and `steering_message`. */
export interface MessagePayload {
  /** The text, joined. */
  readonly text: string;
  /** `system`, `user`, `assistant` or `tool`. */
  readonly role: string;
  /** Not shown to the user. */
  readonly hidden: boolean;
  /** Who wrote it; absent for the user. */
  readonly author?: Author;
  /** The parts, where the message is not one part of text. */
  readonly parts?: readonly PartRecord[];
  /** Of `input_received` and `steering_message`: the id of the input, where it has one. */
  readonly id?: string;
}
/** Where a fork begins. */
export interface NewFork {
  /** Chosen by the client: the same one again creates no other session. */
  readonly id?: string;
  /** The turn after which it continues, from 1. Default: the last one that has finished. */
  readonly turn?: number;
}
/** What a session is created with. */
export interface NewSession {
  /** Chosen by the client: the same one again creates no other session. */
  readonly id?: string;
  /** The name of the agent, for rules and plugins that name agents. Default: `main`. */
  readonly agent?: string;
  /** One of the models that the operator offers. Default: the host's. */
  readonly model?: string;
}
/** The payload of `notice`, `state_lost`. */
export interface Notice {
  /** The sentence for the person. */
  readonly message: string;
}
/** An entry of a plan. */
export interface PlanEntry {
  /** What is to be done, in the words of the model. */
  readonly content: string;
  /** `pending`, `in_progress` or `completed`. */
  readonly status: string;
}
/** The payload of `plan_updated`. */
export interface PlanUpdated {
  /** All entries of the plan, in order. Absent: there is no plan any more. */
  readonly entries?: readonly PlanEntry[];
}
/** What a person is shown of a call: exact strings, to be escaped by the front end. */
export interface Preview {
  /** The decoded arguments. */
  readonly arguments: readonly Argument[];
  /** The change to a file as a unified diff. */
  readonly diff?: string;
  /** Facts that neither the arguments nor the diff show. */
  readonly notes: readonly string[];
}
/** An error as the body of a response, `application/problem+json`. */
export interface Problem {
  /** The kind of the problem as an address: always `about:blank`. */
  readonly type: string;
  /** The words of the status. */
  readonly title: string;
  /** The HTTP status. */
  readonly status: number;
  /** Names the problem for programs; new codes are added. */
  readonly code: string;
  /** What failed and what to do, for a person. */
  readonly detail: string;
}
/** A text that an extension has the model read. */
export interface PromptText {
  /** Where it goes. */
  readonly place: string;
  /** The text as the model reads it. */
  readonly text: string;
}
/** The answer to a command. */
export interface Receipts {
  /** One for each message that the command names. */
  readonly receipts: readonly ReceiptBody[];
}
/** A callback that an extension registered. */
export interface RegisteredCallback {
  /** The callback's name. */
  readonly callback: string;
  /** From 0 to 100, higher first. */
  readonly priority: number;
  /** What follows a failure. */
  readonly on_failure: string;
  /** `shown`: what the user saw is kept of what it changes. */
  readonly keep?: string;
}
/** The payload of `retry_scheduled`. */
export interface RetryScheduled {
  /** The number of this retry, from 1. */
  readonly retry: number;
  /** The most retries there are. */
  readonly max_retries: number;
  /** Milliseconds until the request is sent again. */
  readonly delay_ms: number;
  /** Whether the provider asked for this delay. */
  readonly asked_by_provider: boolean;
}
/** The payload of `retry_succeeded`. */
export interface RetrySucceeded {
  /** The error that made it necessary. */
  readonly original_error: string;
  /** How many times it was tried again. */
  readonly retry_count: number;
  /** Milliseconds waited in all. */
  readonly total_delay_ms: number;
}
/** The payload of `rule_held`. */
export interface RuleHeld {
  /** On which stream. */
  readonly stream: string;
  /** The rules that made them wait. */
  readonly rules: readonly string[];
  /** How often holding began. */
  readonly holds: number;
  /** The most bytes that were held at once. */
  readonly bytes_max: number;
  /** The longest that a byte was held, in milliseconds. */
  readonly ms_max: number;
  /** How the last hold ended. */
  readonly outcome: string;
}
/** The payload of `rule_hold_released`. */
export interface RuleHoldReleased {
  /** On which stream. */
  readonly stream: string;
  /** How many bytes. */
  readonly bytes: number;
  /** `hold_max_bytes` or `hold_max_ms`. */
  readonly bound: string;
}
/** The payload of `rules_reloaded`. */
export interface RulesReloaded {
  /** Rules in use now. */
  readonly active: number;
  /** What was found while they were read. */
  readonly notices: readonly string[];
}
/** All sessions of a user, the latest first. */
export interface SessionList {
  /** Those of the user, and those that are shared with the user. */
  readonly sessions: readonly Summary[];
}
/** An answer has ended; its text is that of the deltas. */
export interface ShownAnswer {
  /** The model's name. */
  readonly model?: string;
  /** Who wrote it: the model, or an extension in its place. */
  readonly author?: Author;
  /** It did not come to its end. */
  readonly is_partial?: boolean;
  /** Of a partial answer: why it ended, such as the rule that stopped it. */
  readonly error?: string;
  /** Of a partial answer: the bytes of it that were shown, including those kept from an earlier attempt. */
  readonly shown_bytes?: number;
  /** Of a partial answer: how many of them, from the start, the next attempt continues. The rest is void; 0: all of it. */
  readonly kept_bytes?: number;
  /**
   * Of a partial answer: what stays in the conversation, `nothing`, `answer`, `start` or `marked`. What was shown and is not void stays
   * as a message of its own with `marked`, `answer`, and `start` where `kept_bytes` has not grown.
   */
  readonly retained?: string;
}
/** A circuit breaker of an extension has changed its state. */
export interface ShownBreaker {
  /** The id of the extension. */
  readonly extension_id: string;
  /** `session` or `host`. */
  readonly scope: string;
  /** `open`, `half_open` or `closed`. */
  readonly state: string;
  /** Milliseconds until a call is tried again; 0 unless it is open. */
  readonly retry_after_ms: number;
}
/** A callback was called, or skipped. */
export interface ShownCallback {
  /** The id of the extension. */
  readonly extension_id: string;
  /** The callback's name. */
  readonly callback: string;
  /** How long it took, in microseconds. */
  readonly duration_us: number;
  /** `passed`, `changed`, `skipped`, `not_permitted`, `error` or `ignored`. */
  readonly outcome: string;
  /** Of a failure: its kind. */
  readonly cause?: string;
}
/** A child did not complete its task. */
export interface ShownChildFailure {
  /** The child's thread. */
  readonly child_thread_id: string;
}
/** The conversation is smaller, or nothing has changed. */
export interface ShownCompaction {
  /** How many messages of the conversation stay, from the end. */
  readonly kept_messages: number;
  /** Tokens of the next prompt as it is now. */
  readonly used_tokens: number;
  /** Why there is no summary. */
  readonly error?: string;
}
/** Reminders of these rules went to the model. */
export interface ShownInjection {
  /** Names of the rules, each once. */
  readonly rules: readonly string[];
  /** Bytes of the answer that were discarded. */
  readonly discarded_bytes: number;
}
/** A stream rule matched. */
export interface ShownMatch {
  /** The name of the rule. */
  readonly rule: string;
  /** `text`, `thinking` or `tool`. */
  readonly stream: string;
  /** What is done about it. */
  readonly action: string;
  /** The first of this stream and rule in the turn. */
  readonly first: boolean;
  /** Only reported: its repeat mode does not let it act. */
  readonly again: boolean;
  /** Of a tool call: its id. */
  readonly call_id?: string;
  /** Of a tool call: the tool's name. */
  readonly tool?: string;
}
/** Another conversation has taken the place of the former. */
export interface ShownReplacement {
  /** How many messages it has. */
  readonly messages: number;
}
/** A call of a tool that an extension provides has ended, or was not made. */
export interface ShownTool {
  /** The id of the extension. */
  readonly extension_id: string;
  /** The tool's name. */
  readonly tool: string;
  /** The id of the call. */
  readonly call_id: string;
  /** How long it took, in microseconds. */
  readonly duration_us: number;
  /** `done`, `rejected`, `not_permitted`, `error` or `stopped`. */
  readonly outcome: string;
  /** Of a failure: its kind. */
  readonly cause?: string;
}
/** A call is over. */
export interface ShownToolResult {
  /** The id of the call. */
  readonly call_id: string;
  /** The tool's name. */
  readonly tool: string;
  /** What the tool gave, after extensions. Absent where the call did not run: what the model reads then can quote what a rule found. */
  readonly output?: string;
  /** It failed, or did not run. */
  readonly is_error: boolean;
  /** A unified diff, for people. */
  readonly diff?: string;
  /** How long it ran; absent where it did not. */
  readonly duration_ms?: number;
  /** How long it waited for a confirmation; absent where nobody was asked. */
  readonly waited_ms?: number;
}
/** The payload of an event contradicts the schema of its type. */
export interface ShownViolation {
  /** The type of the event. */
  readonly event_type: string;
}
/** An extension that fails closed did not check something, so it was not shown, or not sent. */
export interface ShownWithheld {
  /** The id of the extension. */
  readonly extension_id: string;
  /** In which callback. */
  readonly callback: string;
  /** Bytes of text that were withheld. */
  readonly bytes: number;
}
/** The payload of `step_finish`. */
export interface StepFinish {
  /** What it cost, in US dollars; absent where no price is known. */
  readonly cost?: number;
  /** Tokens of all attempts of the step. */
  readonly tokens: Tokens;
  /** `end_turn`, `tool_use`, `limit_exceeded`, `error` or `cancelled`. */
  readonly finish_reason: string;
  /** Why the accepted answer ended, in the model's own words. */
  readonly stop_reason?: string;
  /** Tokens of the context that the last request and its answer have filled. */
  readonly context_tokens?: number;
  /** What counts for the limits of the thread so far. */
  readonly charged?: Charged;
}
/** The payload of `step_start`. */
export interface StepStart {
  /** The number of the step in the thread, from 1. */
  readonly turn_number: number;
}
/** What a list shows of a session. */
export interface Summary {
  /** The session's id. */
  readonly id: string;
  /** The start of the first input. */
  readonly title?: string;
  /** The name of its agent. */
  readonly agent: string;
  /** The model that answers; absent where that is only known when the session is open. */
  readonly model?: string;
  /** The user whose it is. */
  readonly owner: string;
  /** The users with whom it is shared. */
  readonly users: readonly string[];
  /** Whether it is a conversation of a gateway, which can only be read, exported and deleted here. Absent where it is not. */
  readonly gateway?: boolean;
  /** What it is doing. */
  readonly state: SessionState;
  /** When it was created, in milliseconds since 1970-01-01 UTC. */
  readonly created_ms: number;
  /** When something was recorded last, in milliseconds since 1970-01-01 UTC. */
  readonly updated_ms: number;
  /** The number of its last turn that has finished; absent in lists. */
  readonly turns?: number;
}
/** The payload of `thread_cancelled`. */
export interface ThreadCancelled {
  /** Who or what stopped it. */
  readonly cancelled_by: string;
  /** Why, where whoever stopped it has said so. */
  readonly reason?: string;
}
/** The payload of `thread_completed`. */
export interface ThreadCompleted {
  /** What the thread took. */
  readonly cost: Cost;
  /** Its tokens, by kind. */
  readonly tokens: Tokens;
}
/** The payload of `thread_error`. */
export interface ThreadError {
  /** The class of the error. */
  readonly category: string;
  /** The error in one sentence. */
  readonly error: string;
}
/** The payload of `thread_resumed`. */
export interface ThreadResumed {
  /** `input`, `approval` or `continue`; `model`: it was not interrupted, and another model answers from now on. */
  readonly resumed_by: string;
  /** Why the thread was suspended, where it was. */
  readonly previous_suspend_reason?: string;
  /** The provider's name. */
  readonly provider: string;
  /** The model's name. */
  readonly model: string;
}
/** The payload of `thread_started`. */
export interface ThreadStarted {
  /** What runs: the agent's name. */
  readonly directive: string;
  /** The session's id. */
  readonly session_id: string;
  /** The provider's name. */
  readonly provider: string;
  /** The model's name. */
  readonly model: string;
  /** `single`: one input; `conversation`: turns share a history; `channel`: several people or programs write to it. */
  readonly thread_mode: string;
  /** The workspace's folder, absolute; empty where there is none. */
  readonly workspace: string;
  /**
   * What it was started with, by name: what an embedder has given it, the task of a child agent, or the start of its first input
   * (`text`, with `bytes` where it is longer, and the number of `images`). Absent where it was started with nothing.
   */
  readonly inputs?: {
    readonly [k: string]: unknown;
  };
}
/** The payload of `thread_suspended`. */
export interface ThreadSuspended {
  /** `limit`, `error`, `budget` or `approval`. */
  readonly suspend_reason: string;
  /** The cause in one sentence. */
  readonly message: string;
  /** What the thread took so far. */
  readonly cost: Cost;
}
/** Tokens, as far as the provider reports them. */
export interface Tokens {
  /** Of the prompt. */
  readonly input_tokens?: number;
  /** Of the answer. */
  readonly output_tokens?: number;
  /** Of the prompt, read from the provider's cache. */
  readonly cache_read_tokens?: number;
  /** Of the prompt, written to the provider's cache. */
  readonly cache_write_tokens?: number;
}
/** The payload of `tool_call_progress`. */
export interface ToolCallProgress {
  /** The id of the call. */
  readonly call_id: string;
  /** From 0 to 100; absent where the tool does not know. */
  readonly progress?: number;
  /** A human-readable line. */
  readonly message: string;
}
/** The payload of `tool_call_start`. */
export interface ToolCallStart {
  /** The tool's name. */
  readonly tool: string;
  /** Pairs it with its result. */
  readonly call_id: string;
  /** The arguments; `{"raw": "…"}` where the model wrote no JSON object. */
  readonly input: unknown;
}
/** The payload of `tool_confirmation_requested`. */
export interface ToolConfirmationRequested {
  /** The id of the question; absent in records of early versions. */
  readonly question_id?: string;
  /** The id of the call. */
  readonly call_id: string;
  /** The tool's name. */
  readonly tool: string;
  /** The arguments, as in `tool_call_start`. */
  readonly input: unknown;
  /** Which setting asks. */
  readonly reason: string;
  /** What the person is shown of the call. */
  readonly preview: Preview;
  /** What the answer `always` would allow; absent where each such call is asked about. */
  readonly always?: string;
  /** Milliseconds until the question is answered by itself; absent where it waits. */
  readonly timeout_ms?: number;
}
/** The payload of `tool_confirmation_resolved`. */
export interface ToolConfirmationResolved {
  /** The id of the question; absent in records of early versions. */
  readonly question_id?: string;
  /** The id of the call. */
  readonly call_id: string;
  /** Whether the call may run. */
  readonly approved: boolean;
  /** `approved`, `always`, `edited`, `denied`, `unavailable`, `timed_out` or `cancelled`; absent in records of early versions. */
  readonly decision?: string;
  /** Of a denial: the reason, which the model reads. */
  readonly reason?: string;
  /** Of `always`: what is not asked about from now on in the session. */
  readonly pattern?: string;
  /** Of `edited`: the arguments that run, exactly as they were written. */
  readonly arguments?: string;
  /** Who has answered; absent where nobody has. */
  readonly decided_by?: string;
}
/** The payload of `ttsr_rearmed`. */
export interface TtsrRearmed {
  /** Names of the rules, each once. */
  readonly rules: readonly string[];
}
/** The payload of `turn_finish`. */
export interface TurnFinish {
  /** `completed`, `rejected`, `stopped_by_rule`, `cancelled`, `failed`, `step_limit`, `no_progress` or `suspended`. */
  readonly status: string;
  /** Of `rejected`: the extension. */
  readonly extension_id?: string;
  /** Of `rejected`: the reason, for the user. Of `suspended`: `limit`, `error`, `budget` or `approval`. */
  readonly reason?: string;
  /** Of `stopped_by_rule`: the rule. */
  readonly rule?: string;
  /** Of `failed`: the class of the error. */
  readonly category?: string;
  /** Of `failed` and `suspended`: the cause in one sentence. */
  readonly error?: string;
  /** Of `step_limit`: the limit. */
  readonly steps?: number;
}
