import { expect, test } from "vitest";
import { ChatSession, MessageSteering } from "../src/index.js";
import { line } from "./support/server.js";

const dot = { name: "dot.png", media_type: "image/png", source: "iVBORw0KGgo=" };

test("a blank message is refused, and one with nothing but an attachment is not", () => {
  for (const one of [new ChatSession(), new MessageSteering()]) {
    for (const text of ["", " ", "\n\t", "\u00a0\u3000", "\u200b\u2060\ufeff"]) {
      for (const way of ["submit", "steer", "interrupt", "queue"] as const) {
        expect(() => one[way](text), `${way} ${JSON.stringify(text)}`).toThrow(/blank/);
      }
    }
    expect(one.takeCommands()).toEqual([]);
    expect(() => one.queue("")).toThrow(/blank: write a text$/);
    const id = one.queue("Later");
    expect(() => one.edit(id, " ")).toThrow(/blank: write a text, or remove the message$/);
    expect(one.state.queued[0]?.text).toBe("Later");
    one.submit("", [dot]);
    expect(one.takeCommands().length).toBe(1);
  }
  const chat = new ChatSession();
  chat.attach(dot);
  expect(chat.submit(" ")).toBe("user-1");
});

test("the text of a message is made blank where it has an attachment, or where only the server knows", () => {
  for (const one of [new ChatSession(), new MessageSteering()]) {
    const id = one.submit("Look", [dot]);
    one.takeCommands();
    one.edit(id, " ");
    expect(one.takeCommands()).toEqual([{ command: "edit", message: { id, text: " ", attachments: [dot] } }]);
    one.acknowledge(id, { receipt: "queued" });
    one.edit(id, "");
    expect(one.state.queued).toEqual([{ id, text: "", attachments: [dot] }]);
    const plain = one.steer("Look");
    expect(() => one.edit(plain, " ")).toThrow(/blank/);
    one.processEvent(line(0, "input_queued", { id: "of-others", way: "queue", text: "Look", role: "user", hidden: false }));
    one.takeCommands();
    one.edit("of-others", "");
    expect(one.takeCommands()).toEqual([{ command: "edit", message: { id: "of-others", text: "" } }]);
    expect(() => one.edit("nobody's", "")).toThrow(/wait/);
  }
});
