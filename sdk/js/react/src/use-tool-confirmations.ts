import {
  type ConfirmationPolicy,
  ToolConfirmations,
  type ToolConfirmationsOptions,
  type ToolConfirmationsState,
} from "@tidegate/client";
import { type Actions, type Driven, useActions, usePrimitive } from "./use-store.js";

const ACTIONS = ["respond", "answer"] as const;

/** What {@link useToolConfirmations} returns. */
export type UseToolConfirmationsResult = ToolConfirmationsState &
  Actions<ToolConfirmations, (typeof ACTIONS)[number]> &
  Driven;

/** Shows the questions about tool calls, and answers them. */
export function useToolConfirmations(options: ToolConfirmationsOptions = {}): UseToolConfirmationsResult {
  const [state, store] = usePrimitive(
    options,
    (client, latest, common) => new ToolConfirmations(client, { ...common, policy: policyOf(() => latest.current.policy) }),
  );
  return { ...state, ...useActions(store, ACTIONS) };
}

/** The latest policy. Without one, the person is asked. */
export function policyOf(latest: () => ConfirmationPolicy | undefined): ConfirmationPolicy {
  return (request) => latest()?.(request) ?? { action: "prompt" };
}
