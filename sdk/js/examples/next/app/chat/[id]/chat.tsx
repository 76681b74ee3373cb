"use client";

import { useChat } from "@tidegate/react";
import { useState } from "react";

export function Chat({ sessionId }: { sessionId: string }) {
  const { messages, submit, chatMode, toolConfirmation, respondToConfirmation, connectionError } = useChat({ sessionId });
  const [text, setText] = useState("");
  return (
    <main>
      <ol>
        {messages.map(({ id, author, blocks }) => (
          <li key={id} title={author}>
            {blocks.map((block, index) => (block.void ? <s key={index}>{block.text}</s> : block.text))}
          </li>
        ))}
      </ol>
      {toolConfirmation && (
        <p role="alert">
          {toolConfirmation.request.name}: {toolConfirmation.request.arguments}
          <button onClick={() => respondToConfirmation({ approved: true })}>Allow</button>
          <button onClick={() => respondToConfirmation({ approved: false })}>Deny</button>
        </p>
      )}
      {connectionError && <p role="alert">{connectionError.message}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          submit(text);
          setText("");
        }}
      >
        <input aria-label="Message" required value={text} onChange={(event) => setText(event.target.value)} />
        <output>{chatMode}</output>
      </form>
    </main>
  );
}
