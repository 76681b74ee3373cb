/**
 * The chat primitives of Tidegate for front ends, and a client of its server.
 *
 * @packageDocumentation
 */
export { ChatSession, defaultDeriveMode } from "./chat-session.js";
export type { ChatModeDeriver, ChatModeInput, ChatSessionOptions, ChatSessionState } from "./chat-session.js";
export { TidegateClient } from "./client.js";
export type { ClientOptions, CreateSession, Sessions, SessionSummary } from "./client.js";
export { ConnectionError, EventError, TidegateError, TimeoutError } from "./errors.js";
export { isEvent } from "./events.js";
export type { KnownEvent, Line, OtherEvent, Payloads, StreamEvent, StreamItem } from "./events.js";
export { MessageLog } from "./message-log.js";
export type { MessageLogOptions, MessageLogState } from "./message-log.js";
export { MessageSteering } from "./message-steering.js";
export type { MessageSteeringOptions, MessageSteeringState } from "./message-steering.js";
export type { MessageTransform } from "./message-store.js";
export { RefusedError } from "./primitive.js";
export type { Primitive, PrimitiveOptions } from "./primitive.js";
export type { Session } from "./remote-session.js";
export type { Connection, ConnectionState, MessageReceipt, SessionAccessor, SessionSource } from "./session.js";
export { StreamingText } from "./streaming-text.js";
export { ToolConfirmations } from "./tool-confirmations.js";
export type {
  ConfirmationDecision,
  ConfirmationPolicy,
  ToolConfirmationRequest,
  ToolConfirmationResponse,
  ToolConfirmationState,
  ToolConfirmationsOptions,
  ToolConfirmationsState,
} from "./tool-confirmations.js";
export type * from "./types.js";
export type { StreamingTextState } from "./view.js";
