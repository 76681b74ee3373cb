import { type Decider, Primitive, type PrimitiveOptions } from "./primitive.js";
import type { SessionSource } from "./session.js";
import type { Answer, Question } from "./types.js";

/** A question as a policy and a person get it. */
export type ToolConfirmationRequest = Question & {
  /** The tool's name, as `tool`. */
  readonly name: string;
};

/** The answer to a question. With `arguments`, the call runs with these, as JSON; with `always`, later calls need no answer. */
export interface ToolConfirmationResponse {
  readonly approved: boolean;
  readonly reason?: string;
  readonly always?: boolean;
  readonly arguments?: string;
}

/** What a policy decides about a question before it is shown. */
export type ConfirmationDecision =
  | { readonly action: "prompt" | "approve" | "always" }
  | { readonly action: "deny"; readonly reason?: string }
  | { readonly action: "edit"; readonly arguments: string };

/** Decides about questions before they are shown. One that throws asks the person, and `policy_error` says why. */
export type ConfirmationPolicy = (request: ToolConfirmationRequest) => ConfirmationDecision;

/** A question that waits for the person, and how to answer it. */
export interface ToolConfirmationState {
  readonly request: ToolConfirmationRequest;
  /** Throws a {@link RefusedError} the second time, and where it was answered elsewhere. */
  respond(response: ToolConfirmationResponse): void;
}

/** The settings of {@link ToolConfirmations}. */
export interface ToolConfirmationsOptions extends PrimitiveOptions {
  /** Answers some questions for the person. Default: the person is asked. */
  readonly policy?: ConfirmationPolicy;
}

/** The questions about tool calls. It is the same object until one of them changes. */
export interface ToolConfirmationsState {
  /** The oldest question that waits for the person, or `null`. */
  readonly pending: ToolConfirmationState | null;
  /** All that wait for the person, oldest first. */
  readonly allPending: readonly ToolConfirmationState[];
  /** All that are not resolved, those included that this front end has answered. */
  readonly questions: readonly Question[];
}

/** The questions about tool calls of a session and of its children. */
export class ToolConfirmations extends Primitive<ToolConfirmationsState> {
  constructor(client: SessionSource | null = null, options: ToolConfirmationsOptions = {}) {
    super(client, options, { kind: "confirmations" }, { decide: decider(options.policy) });
  }

  get pending(): ToolConfirmationState | null {
    return this.state.pending;
  }

  /**
   * Answers a question: that with the id, or else the oldest one that waits; where none does, nothing happens. Throws a {@link RefusedError} where the
   * question with the id is not open any more, or this front end has answered it.
   */
  respond(response: ToolConfirmationResponse, id = this.pending?.request.id): void {
    if (id !== undefined) this.answer(id, answerOf(response));
  }

  /** Answers the question with an id. Throws a {@link RefusedError} where it is not open any more, or this front end has answered it. */
  answer(id: string, answer: Answer): void {
    this.act("respond", { question: id, answer });
  }

  protected createSnapshot(): ToolConfirmationsState {
    const { questions } = this.view;
    const allPending = pendingOf(questions, (id, answer) => this.answer(id, answer));
    return { pending: allPending[0] ?? null, allPending, questions };
  }
}

/** The questions that wait for the person, each with its way to answer. */
export function pendingOf(
  questions: readonly Question[],
  answer: (id: string, answer: Answer) => void,
): readonly ToolConfirmationState[] {
  const open = questions.filter((question) => question.answer === undefined);
  return open.map((question) => ({
    request: requestOf(question),
    respond: (response) => answer(question.id, answerOf(response)),
  }));
}

/** The policy as the primitives call it. */
export function decider(policy: ConfirmationPolicy | undefined): Decider | undefined {
  return policy && ((question) => decided(policy(requestOf(question))));
}

function requestOf(question: Question): ToolConfirmationRequest {
  return { ...question, name: question.tool };
}

function decided(decision: ConfirmationDecision): Answer | undefined {
  switch (decision.action) {
    case "prompt":
      return undefined;
    case "deny":
      return decision.reason === undefined ? { decision: "deny" } : { decision: "deny", reason: decision.reason };
    case "edit":
      return { decision: "edit", arguments: decision.arguments };
    default:
      return { decision: decision.action };
  }
}

export function answerOf(response: ToolConfirmationResponse): Answer {
  if (!response.approved) {
    return response.reason === undefined ? { decision: "deny" } : { decision: "deny", reason: response.reason };
  }
  if (response.arguments !== undefined) return { decision: "edit", arguments: response.arguments };
  return { decision: response.always ? "always" : "approve" };
}
