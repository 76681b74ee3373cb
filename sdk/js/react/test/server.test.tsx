// @vitest-environment node
import { MessageLog, TidegateClient } from "@tidegate/client";
import type { ReactElement } from "react";
import { renderToString } from "react-dom/server";
import { expect, test, vi } from "vitest";
import { TidegateProvider, useChat, useEvents, useMessages } from "../src/index.js";
import { textOf } from "./support/render.js";

const blocks = [{ kind: "text" as const, text: "Hello", complete: true }];
const initialMessages = [{ id: "m", author: "user" as const, blocks }];

function Chat(): ReactElement {
  const { messages } = useMessages({ sessionId: "s", initialMessages });
  const { chatMode } = useChat({ sessionId: "s" });
  const { event } = useEvents({ sessionId: "s" });
  return <p>{[...messages.map(textOf), chatMode, String(event)].join(", ")}</p>;
}

test("a server renders what is known before the first event, and connects with nothing", () => {
  const fetch = vi.fn<typeof globalThis.fetch>();
  const destroy = vi.spyOn(MessageLog.prototype, "destroy");
  const client = new TidegateClient({ fetch });
  const html = renderToString(<TidegateProvider client={client}><Chat /></TidegateProvider>);
  expect(html).toBe("<p>Hello, idle, null</p>");
  expect(fetch).not.toHaveBeenCalled();
  expect(destroy).toHaveBeenCalled();
});

test("without a client, a hook says what is missing", () => {
  expect(() => renderToString(<Chat />)).toThrow("put a <TidegateProvider client={client}> around the component");
});
