import type { Primitive, PrimitiveOptions, SessionSource, StreamEvent } from "@tidegate/client";
import { useInsertionEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { useClient } from "./provider.js";
import { Store } from "./store.js";

/** The options of a hook as of its last render, so that the functions among them can be written inline. */
export interface Latest<Options> {
  readonly current: Options;
}

/** What each hook around a primitive returns. */
export interface Driven {
  /** Takes the next event, where `subscribe` is `false`. */
  readonly processEvent: (event: StreamEvent) => void;
}

/** The methods of a primitive as functions that stay the same. */
export type Actions<P, Name extends keyof P> = Readonly<Pick<P, Name>>;

/** Returns the state of a primitive, and what {@link useActions} takes. The primitive is made anew for another session. */
export function usePrimitive<P extends Primitive<unknown>, Options extends PrimitiveOptions>(
  options: Options,
  make: (client: SessionSource, latest: Latest<Options>, common: PrimitiveOptions) => P,
): readonly [state: P["state"], store: Store<P>] {
  const client = useClient<SessionSource>();
  const latest = useLatest(options);
  const { sessionId, subscribe } = options;
  const store = useKept(() => {
    const onError = (error: unknown) => (latest.current.onError ?? console.error)(error);
    const common = { ...(sessionId !== undefined && { sessionId }), subscribe: false, onError };
    const session = sessionId === undefined || subscribe === false ? undefined : client.session(sessionId);
    return new Store(() => make(client, latest, common), session);
  }, [client, sessionId, subscribe]);
  const state = useSyncExternalStore<P["state"]>(store.subscribe, store.snapshot, () => store.initial);
  return [state, store];
}

/** Returns functions that call methods of a primitive. */
export function useActions<P extends Primitive<unknown>, Name extends keyof P>(
  store: Store<P>,
  names: readonly Name[],
): Actions<P, Name> & Driven {
  return useMemo(() => {
    const call = (name: Name) => (...given: unknown[]) =>
      store.act((primitive) => (primitive[name] as (...given: unknown[]) => unknown).apply(primitive, given));
    const actions = Object.fromEntries(names.map((name) => [name, call(name)])) as Actions<P, Name>;
    return { ...actions, processEvent: (event) => store.drive((primitive) => primitive.processEvent(event)) };
  }, [store, names]);
}

/** Returns the value that was given last, for functions that are called outside of rendering. */
export function useLatest<Value>(value: Value): Latest<Value> {
  const latest = useRef(value);
  useInsertionEffect(() => {
    latest.current = value;
  });
  return latest;
}

/** Makes a value, and another one where a dependency has changed. React is free to forget what `useMemo` has; this is kept. */
export function useKept<Value>(make: () => Value, dependencies: readonly unknown[]): Value {
  const [kept, keep] = useState(() => ({ dependencies, value: make() }));
  if (dependencies.every((one, index) => Object.is(one, kept.dependencies[index]))) return kept.value;
  const next = { dependencies, value: make() };
  keep(next);
  return next.value;
}
