import type { ChatMessage, SessionSource } from "@tidegate/client";
import { render, type RenderResult } from "@testing-library/react";
import { StrictMode, type ReactElement, type ReactNode } from "react";
import { TidegateProvider } from "../../src/index.js";

/** Renders with a client, in strict mode where it is asked for. */
export function renderWith(client: SessionSource, element: ReactElement, isStrict = false): RenderResult {
  const wrapper = ({ children }: { children: ReactNode }) => {
    const provided = <TidegateProvider client={client}>{children}</TidegateProvider>;
    return isStrict ? <StrictMode>{provided}</StrictMode> : provided;
  };
  return render(element, { wrapper });
}

/** A component that shows nothing, and what its hook returned last. */
export function probe<Result>(hook: () => Result): { readonly Probe: () => null; readonly last: () => Result; readonly renders: () => number } {
  let last: Result;
  let renders = 0;
  const Probe = () => {
    last = hook();
    renders += 1;
    return null;
  };
  return { Probe, last: () => last, renders: () => renders };
}

export function textOf(message: ChatMessage): string {
  return message.blocks.map((block) => block.text).join("");
}
