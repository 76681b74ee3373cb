import { TidegateClient } from "@tidegate/client";
import { fireEvent, screen, waitFor } from "@testing-library/react";
import { afterAll, beforeAll, expect, test } from "vitest";
import { useChat } from "../src/index.js";
import { renderWith, textOf } from "./support/render.js";
import { Tidegate } from "./support/tidegate.js";

let server: Tidegate;
beforeAll(async () => {
  server = await Tidegate.start([
    [{ text: "I write " }, { text: "it." }, { tool: "write_file", arguments: { path: "a.txt", content: "Hello" } }],
    [{ text: "It is " }, { text: "written." }],
  ]);
});
afterAll(() => server.stop());

function Chat({ sessionId }: { sessionId: string }) {
  const { messages, submit, chatMode, toolConfirmation, respondToConfirmation } = useChat({ sessionId });
  return (
    <>
      <output>{chatMode}</output>
      <ul>{messages.map((message) => <li key={message.id}>{textOf(message)}</li>)}</ul>
      <button onClick={() => submit("Write a.txt")}>Send</button>
      {toolConfirmation && (
        <button onClick={() => respondToConfirmation({ approved: true })}>Allow {toolConfirmation.request.name}</button>
      )}
    </>
  );
}

test("a turn of `tidegate serve` with a question, in strict mode", async () => {
  const client = new TidegateClient({ baseUrl: server.baseUrl });
  const { id } = await client.sessions.create();
  renderWith(client, <Chat sessionId={id} />, true);
  fireEvent.click(screen.getByText("Send"));
  fireEvent.click(await screen.findByText("Allow write_file"));
  await screen.findByText("It is written.");
  await waitFor(() => expect(screen.getByRole("status").textContent).toBe("idle"));
  const shown = screen.getAllByRole("listitem").map((item) => item.textContent);
  expect(shown).toEqual(["Write a.txt", "I write it.", "It is written."]);
});
