import { expect, test } from "vitest";
import { ChatSession, MessageSteering } from "../src/index.js";

test("a blank message is refused, and one with nothing but an attachment is not", () => {
  const dot = { name: "dot.png", media_type: "image/png", source: "iVBORw0KGgo=" };
  for (const one of [new ChatSession(), new MessageSteering()]) {
    for (const text of ["", " ", "\n\t", "\u00a0\u3000"]) {
      for (const way of ["submit", "steer", "interrupt", "queue"] as const) {
        expect(() => one[way](text), `${way} ${JSON.stringify(text)}`).toThrow(/blank/);
      }
    }
    expect(one.takeCommands()).toEqual([]);
    const id = one.queue("Later");
    expect(() => one.edit(id, " ")).toThrow(/blank/);
    expect(one.state.queued[0]?.text).toBe("Later");
    one.submit("", [dot]);
    expect(one.takeCommands().length).toBe(1);
  }
  const chat = new ChatSession();
  chat.attach(dot);
  expect(chat.submit(" ")).toBe("user-1");
});
