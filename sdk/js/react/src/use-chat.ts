import {
  type ChatMode,
  type ChatModeDeriver,
  ChatSession,
  type ChatSessionOptions,
  type ChatSessionState,
  defaultDeriveMode,
} from "@tidegate/client";
import { STEERING } from "./use-message-steering.js";
import { transformOf } from "./use-messages.js";
import { type Actions, type Driven, useActions, usePrimitive } from "./use-store.js";
import { policyOf } from "./use-tool-confirmations.js";

const ACTIONS = [...STEERING, "respondToConfirmation", "answer", "clearMessages", "attach", "detach"] as const;

/** What {@link useChat} returns. */
export type UseChatResult<Mode extends string = ChatMode> = ChatSessionState<Mode> &
  Actions<ChatSession, (typeof ACTIONS)[number]> &
  Driven;

/**
 * A chat with a session: its messages, questions and queue, and what changes them.
 *
 * The functions among the options can be written inline: the latest are called. All other options count when the chat starts, which is when the
 * component mounts and with each other `sessionId`.
 */
export function useChat<Mode extends string = ChatMode>(options: ChatSessionOptions<Mode> = {}): UseChatResult<Mode> {
  const [state, store] = usePrimitive(
    options,
    (client, latest, common) => {
      const { deriveMode: _, ...rest } = latest.current;
      const confirmationPolicy = policyOf(() => latest.current.confirmationPolicy);
      const onEvent: NonNullable<typeof rest.onEvent> = (...given) => latest.current.onEvent?.(...given);
      return new ChatSession(client, { ...rest, ...transformOf(latest), ...common, confirmationPolicy, onEvent });
    },
  );
  return { ...state, ...useActions(store, ACTIONS), chatMode: modeOf(state, options.deriveMode) };
}

/** The mode, derived in each render: `deriveMode` can depend on the state of its component. */
function modeOf<Mode extends string>(state: ChatSessionState, deriveMode: ChatModeDeriver<Mode> | undefined): Mode {
  const { isExecuting, toolConfirmation, error } = state;
  const derive = deriveMode ?? (defaultDeriveMode as ChatModeDeriver<string> as ChatModeDeriver<Mode>);
  return derive({ isExecuting, hasPendingConfirmation: toolConfirmation !== null, hasError: error !== null });
}
