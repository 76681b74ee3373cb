import { fireEvent, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { useChat } from "../../src/index.js";
import { delta, line } from "../support/events.js";
import { renderWith, textOf } from "../support/render.js";
import { Source } from "../support/source.js";

function Chat({ sessionId }: { sessionId: string }) {
  const { messages, submit, chatMode } = useChat({ sessionId });
  return (
    <button title={chatMode} onClick={() => submit("Hello")}>
      {messages.map(textOf).join()}
    </button>
  );
}

test("one call is a chat that works", async () => {
  const source = new Source();
  renderWith(source, <Chat sessionId="s" />);
  fireEvent.click(screen.getByTitle("idle"));
  expect(source.session("s").commands).toMatchObject([{ command: "prompt", messages: [{ text: "Hello" }] }]);
  source.session("s").emit(line(0, "turn_start"), delta(1, "Good "), delta(2, "day"));
  expect((await screen.findByTitle("streaming")).textContent).toBe("Good day");
  source.session("s").emit(line(3, "turn_finish", { status: "completed" }));
  expect((await screen.findByTitle("idle")).textContent).toBe("Good day");
});
