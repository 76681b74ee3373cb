"use client";
/**
 * The chat primitives of Tidegate as hooks for React.
 *
 * @packageDocumentation
 */
export { TidegateProvider, useClient } from "./provider.js";
export type { TidegateProviderProps } from "./provider.js";
export { useChat } from "./use-chat.js";
export type { UseChatResult } from "./use-chat.js";
export { useConnection } from "./use-connection.js";
export type { UseConnectionOptions, UseConnectionResult } from "./use-connection.js";
export { useEvents } from "./use-events.js";
export type { UseEventsOptions, UseEventsResult } from "./use-events.js";
export { useMessages } from "./use-messages.js";
export type { UseMessagesResult } from "./use-messages.js";
export { useMessageSteering } from "./use-message-steering.js";
export type { UseMessageSteeringResult } from "./use-message-steering.js";
export { useStreamingText } from "./use-streaming-text.js";
export type { UseStreamingTextResult } from "./use-streaming-text.js";
export { useToolConfirmations } from "./use-tool-confirmations.js";
export type { UseToolConfirmationsResult } from "./use-tool-confirmations.js";
export type { Actions, Driven } from "./use-store.js";
