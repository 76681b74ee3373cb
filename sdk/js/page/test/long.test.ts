import { TidegateClient } from "@tidegate/client";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { Answer } from "./support/model.js";
import { picture } from "./support/browser.js";
import { suite } from "./support/suite.js";

const its = suite();

/** The most messages of a prompt. */
const AT_ONCE = 64;

/** A session with so many messages, as many of which as possible are in one turn. */
async function filled(messages: number): Promise<string> {
  const client = new TidegateClient({ baseUrl: its.server.url });
  const { id } = await client.sessions.create();
  const session = client.session(id);
  const states: string[] = [];
  const undo = session.onItem((item) => item.kind === "event" && states.push(item.event.type));
  for (let sent = 0, turns = 1; sent + turns <= messages; turns += 1) {
    const of = Math.min(AT_ONCE, messages - sent - turns);
    const texts = Array.from({ length: of }, (_, index) => ({ id: `m-${sent + index}`, text: `Message ${sent + index}` }));
    await session.send({ command: "prompt", messages: texts });
    (await its.model.request()).say(`Answer ${turns}.`).end();
    while (states.filter((type) => type === "turn_finish").length < turns) await new Promise((done) => setTimeout(done, 2));
    sent += of;
  }
  undo();
  return id;
}

/** Waits until a text is in the page and a frame was painted after that. Returns the milliseconds that it took. */
async function painted(page: Page, act: () => unknown, text: string): Promise<number> {
  const started = performance.now();
  await act();
  await page.getByText(text).last().waitFor();
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
  return Math.round(performance.now() - started);
}

test("10,000 messages: the list, a delta and the way back", { timeout: 300_000 }, async () => {
  const id = await filled(10_000);
  const page = await its.open();
  const list = await painted(page, () => page.goto(`${its.server.url}#/${id}`), "Answer 154.");
  expect(await page.locator(".message").count()).toBeLessThanOrEqual(60);
  const field = page.getByRole("textbox", { name: "Message", exact: true });
  const typed = await painted(page, () => field.fill("One more"), "One more");
  await field.press("Enter");
  const answer: Answer = await its.model.request();
  const deltas: number[] = [];
  for (const word of ["first", "second", "third", "fourth", "fifth"]) deltas.push(await painted(page, () => answer.say(`The ${word} delta. `), `The ${word} delta.`));
  answer.end();
  await page.getByText("Working …").waitFor({ state: "detached" });
  const earlier = await painted(page, () => page.getByRole("button", { name: /Show earlier/ }).click(), "Message 9800");
  await page.getByRole("button", { name: "Activity" }).click();
  // A turn that came as a snapshot, of which messages show the most.
  const turn = page.getByRole("group").filter({ hasText: "Turn 120" });
  await turn.locator("summary").click();
  expect(await turn.locator(".entries > .input").count()).toBe(AT_ONCE);
  expect(await turn.locator(".entries > .answer").count()).toBe(1);
  await picture(page, "long");
  console.log(`10,000 messages: list ${list} ms, a text typed ${typed} ms, deltas ${deltas.join(", ")} ms, 120 earlier messages ${earlier} ms`);
});
