import { MessageSteering, type MessageSteeringOptions, type MessageSteeringState } from "@tidegate/client";
import { type Actions, type Driven, useActions, usePrimitive } from "./use-store.js";

/** The methods that send messages, or change those that wait. */
export const STEERING = [
  "submit",
  "steer",
  "interrupt",
  "queue",
  "flush",
  "edit",
  "removeQueued",
  "takeBack",
  "clearQueued",
  "setMode",
  "receipt",
] as const;

/** What {@link useMessageSteering} returns. */
export type UseMessageSteeringResult = MessageSteeringState & Actions<MessageSteering, (typeof STEERING)[number]> & Driven;

/** Sends messages, and shows those that wait or are on their way. `mode` is the first one; `setMode` changes it. */
export function useMessageSteering(options: MessageSteeringOptions = {}): UseMessageSteeringResult {
  const [state, store] = usePrimitive(
    options,
    (client, latest, common) => new MessageSteering(client, { ...latest.current, ...common }),
  );
  return { ...state, ...useActions(store, STEERING) };
}
