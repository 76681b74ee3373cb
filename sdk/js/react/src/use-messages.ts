import { MessageLog, type MessageLogOptions, type MessageLogState } from "@tidegate/client";
import { type Actions, type Driven, type Latest, useActions, usePrimitive } from "./use-store.js";

const ACTIONS = ["clear"] as const;

/** What {@link useMessages} returns. */
export type UseMessagesResult = MessageLogState & Actions<MessageLog, (typeof ACTIONS)[number]> & Driven;

/** Shows the messages of a session. Those that did not change are the same objects in the next render. */
export function useMessages(options: MessageLogOptions = {}): UseMessagesResult {
  const [state, store] = usePrimitive(
    options,
    (client, latest, common) => new MessageLog(client, { ...latest.current, ...transformOf(latest), ...common }),
  );
  return { ...state, ...useActions(store, ACTIONS) };
}

/** The latest transform. Whether there is one is decided once: without, the list of messages takes no time in proportion to it. */
export function transformOf(latest: Latest<MessageLogOptions>): Pick<MessageLogOptions, "transform"> {
  if (!latest.current.transform) return {};
  return { transform: (message) => latest.current.transform?.(message) ?? [] };
}
