import { type ChatModeInput, defaultDeriveMode } from "@tidegate/client";
import { fireEvent, screen, waitFor } from "@testing-library/react";
import { expect, test } from "vitest";
import { useChat } from "../../src/index.js";
import { asked, line } from "../support/events.js";
import { renderWith, textOf } from "../support/render.js";
import { Source } from "../support/source.js";

function Chat({ sessionId }: { sessionId: string }) {
  const { messages, submit, chatMode } = useChat({
    sessionId,
    // Calls of tools that only read need no answer.
    confirmationPolicy: (req) =>
      ["read_file", "glob", "grep"].includes(req.name) ? { action: "approve" } : { action: "prompt" },
    // Modes of one's own.
    deriveMode: ({ isExecuting, hasPendingConfirmation }) => {
      if (hasPendingConfirmation) return "confirming";
      if (isExecuting) return "thinking";
      return "ready";
    },
  });
  const mode: "confirming" | "thinking" | "ready" = chatMode;
  return <button title={mode} onClick={() => submit("Hello")}>{messages.map(textOf).join()}</button>;
}

test("options are a policy and modes of one's own", async () => {
  const source = new Source();
  const session = source.session("s");
  renderWith(source, <Chat sessionId="s" />);
  fireEvent.click(screen.getByTitle("ready"));
  session.emit(line(0, "turn_start"), asked(1, "q-1", "grep"));
  await screen.findByTitle("thinking");
  expect(session.commands[1]).toMatchObject({ command: "answer", question: "q-1", answer: { decision: "approve" } });
  session.emit(asked(2, "q-2", "shell"));
  await screen.findByTitle("confirming");
  expect(session.commands.length).toBe(2);
});

const myDeriver = (input: ChatModeInput) => {
  const base = defaultDeriveMode(input);
  if (base === "idle" && input.hasError) return "error";
  return base;
};

function Failing({ sessionId }: { sessionId: string }) {
  const { chatMode, error } = useChat({ sessionId, deriveMode: myDeriver });
  return <p>{[chatMode, error?.message].join(": ")}</p>;
}

test("the default of the modes can be extended", async () => {
  const source = new Source();
  const { container } = renderWith(source, <Failing sessionId="s" />);
  const end = { status: "failed", category: "provider", error: "it is away" };
  source.session("s").emit(line(0, "turn_start"), line(1, "turn_finish", end));
  await waitFor(() => expect(container.textContent).toBe("error: it is away"));
});
