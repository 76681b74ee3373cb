import type { SessionSource, TidegateClient } from "@tidegate/client";
import { createContext, createElement, type ReactElement, type ReactNode, useContext } from "react";

const Client = createContext<SessionSource | null>(null);

/** The properties of {@link TidegateProvider}. */
export interface TidegateProviderProps {
  /** Must stay the same object: another one starts all hooks again. */
  readonly client: SessionSource;
  readonly children?: ReactNode;
}

/** Gives the hooks below it their client. */
export function TidegateProvider({ client, children }: TidegateProviderProps): ReactElement {
  return createElement(Client.Provider, { value: client }, children);
}

/** Returns the client of the nearest {@link TidegateProvider}, whose type the caller knows. Throws without one. */
export function useClient<Source extends SessionSource = TidegateClient>(): Source {
  const client = useContext(Client);
  if (!client) throw new Error("there is no client: put a <TidegateProvider client={client}> around the component");
  return client as Source;
}
