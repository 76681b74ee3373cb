import { type PrimitiveOptions, StreamingText, type StreamingTextState } from "@tidegate/client";
import { type Driven, useActions, usePrimitive } from "./use-store.js";

const ACTIONS: readonly never[] = [];

/** What {@link useStreamingText} returns. */
export type UseStreamingTextResult = StreamingTextState & Driven;

/** Shows the text of the current answer so far. */
export function useStreamingText(options: PrimitiveOptions = {}): UseStreamingTextResult {
  const [state, store] = usePrimitive(options, (client, _latest, common) => new StreamingText(client, common));
  return { ...state, ...useActions(store, ACTIONS) };
}
