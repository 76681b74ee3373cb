import { act, waitFor } from "@testing-library/react";
import { hydrateRoot, type Root } from "react-dom/client";
import { renderToString } from "react-dom/server";
import { expect, test, vi } from "vitest";
import { TidegateProvider, useMessages } from "../src/index.js";
import { delta } from "./support/events.js";
import { textOf } from "./support/render.js";
import { Source } from "./support/source.js";

const blocks = [{ kind: "text" as const, text: "Hello", complete: true }];
const initialMessages = [{ id: "m", author: "user" as const, blocks }];

test("a page that a server rendered continues in the browser", async () => {
  const errors = vi.spyOn(console, "error");
  const source = new Source();
  const Log = () => <p>{useMessages({ sessionId: "s", initialMessages }).messages.map(textOf).join(", ")}</p>;
  const page = <TidegateProvider client={source}><Log /></TidegateProvider>;
  const place = document.body.appendChild(document.createElement("div"));
  place.innerHTML = renderToString(page);
  expect(place.textContent).toBe("Hello");
  const onRecoverableError = vi.fn();
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  let root: Root | undefined;
  act(() => void (root = hydrateRoot(place, page, { onRecoverableError })));
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: false });
  source.session("s").emit(delta(0, "Hi"));
  await waitFor(() => expect(place.textContent).toBe("Hello, Hi"));
  expect(onRecoverableError).not.toHaveBeenCalled();
  expect(errors).not.toHaveBeenCalled();
  root?.unmount();
});
