import { useCallback, useSyncExternalStore } from "react";

/** The id of the session that is shown. It is behind `#`, which a browser sends to no server. */
export type Route = string | undefined;

export function useRoute(): readonly [Route, (route: Route) => void] {
  const route = useSyncExternalStore(subscribe, read);
  const go = useCallback((next: Route) => {
    location.hash = next === undefined ? "" : `/${encodeURIComponent(next)}`;
  }, []);
  return [route, go];
}

function subscribe(listener: () => void): () => void {
  addEventListener("hashchange", listener);
  return () => removeEventListener("hashchange", listener);
}

function read(): Route {
  const id = /^#\/(.+)$/.exec(location.hash)?.[1];
  try {
    return id === undefined ? undefined : decodeURIComponent(id);
  } catch {
    return undefined;
  }
}
