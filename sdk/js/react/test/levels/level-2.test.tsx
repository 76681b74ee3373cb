import type { ChatMessage, ConfirmationPolicy } from "@tidegate/client";
import { fireEvent, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { useMessages, useMessageSteering, useToolConfirmations } from "../../src/index.js";
import { asked, delta, line } from "../support/events.js";
import { renderWith, textOf } from "../support/render.js";
import { Source } from "../support/source.js";

const autoApproveReads: ConfirmationPolicy = (request) =>
  request.name === "read_file" ? { action: "approve" } : { action: "prompt" };

function CustomChat({ sessionId }: { sessionId: string }) {
  // Mix and match primitives.
  const { messages, clear } = useMessages({ sessionId });
  const { submit, queued } = useMessageSteering({ sessionId, mode: "queue" });
  const { pending, respond } = useToolConfirmations({
    sessionId,
    policy: autoApproveReads,
  });

  // Derive your own mode.
  const mode = pending ? "confirm" : messages.length > 0 ? "active" : "empty";

  return (
    <>
      <MyCustomUI messages={messages} mode={mode} />
      <p>{queued.length} queued</p>
      <button onClick={() => submit("Next")}>Send</button>
      <button onClick={() => respond({ approved: false, reason: "not now" })}>Deny</button>
      <button onClick={clear}>Clear</button>
    </>
  );
}

function MyCustomUI({ messages, mode }: { messages: readonly ChatMessage[]; mode: string }) {
  return <output title={mode}>{messages.map(textOf).join()}</output>;
}

test("primitives are put together by hand", async () => {
  const source = new Source();
  const session = source.session("s");
  renderWith(source, <CustomChat sessionId="s" />);
  expect(screen.getByRole("status").title).toBe("empty");
  session.emit(line(0, "turn_start"), delta(1, "Hi"), asked(2, "q-1", "read_file"));
  expect((await screen.findByTitle("active")).textContent).toBe("Hi");
  fireEvent.click(screen.getByText("Send"));
  expect(screen.getByText("1 queued")).toBeDefined();
  session.emit(asked(3, "q-2", "shell"));
  await screen.findByTitle("confirm");
  fireEvent.click(screen.getByText("Deny"));
  fireEvent.click(screen.getByText("Clear"));
  expect(screen.getByRole("status").title).toBe("empty");
  session.emit(line(4, "turn_finish", { status: "completed" }));
  await screen.findByText("0 queued");
  expect(session.commands).toMatchObject([
    { question: "q-1", answer: { decision: "approve" } },
    { question: "q-2", answer: { decision: "deny", reason: "not now" } },
    { command: "prompt", messages: [{ text: "Next" }] },
  ]);
});
