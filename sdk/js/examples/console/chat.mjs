// One turn on the console, which allows every tool call: `node chat.mjs http://127.0.0.1:8791 "Write a.txt"`, and as well with Deno and Bun.
import process from "node:process";
import { ChatSession, TidegateClient } from "@tidegate/client";

const [baseUrl, text] = process.argv.slice(2);
const client = new TidegateClient({ baseUrl });
const { id } = await client.sessions.create();
const chat = new ChatSession(client, { sessionId: id, confirmationPolicy: () => ({ action: "approve" }) });

const done = new Promise((end) => {
  chat.onStateChange(() => {
    const { messages, isExecuting } = chat.state;
    if (!isExecuting && messages.at(-1)?.author === "assistant") end(messages);
  });
});
chat.submit(text);
for (const { author, blocks } of await done) {
  console.log(`${author}: ${blocks.map((block) => block.text).join("")}`);
}
chat.destroy();
