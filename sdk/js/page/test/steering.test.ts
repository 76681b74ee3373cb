import { TidegateClient } from "@tidegate/client";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { Answer } from "./support/model.js";
import { newSession, picture, write } from "./support/browser.js";
import { suite } from "./support/suite.js";

const its = suite();

/** A picture of one pixel. */
const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==";

/** A session whose model is writing. */
async function working(): Promise<readonly [Page, Answer]> {
  const page = await its.open();
  await newSession(page);
  await write(page, "Begin");
  const answer = await its.model.request();
  answer.say("I have begun. ");
  await page.getByText("I have begun.").waitFor();
  return [page, answer];
}

async function writeAs(page: Page, way: string, text: string): Promise<void> {
  await page.getByRole("radio", { name: way }).check();
  await write(page, text);
}

const waiting = (page: Page) => page.getByRole("region", { name: "Messages that wait" });

test("a steering message is delivered with the next request", async () => {
  const [page, answer] = await working();
  await writeAs(page, "Steer", "Only in this file");
  await waiting(page).getByText("Only in this file").waitFor();
  answer.end();
  const next = await its.model.request();
  expect(next.body).toContain("Only in this file");
  next.say("As you say.").end();
  await page.getByText("As you say.").waitFor();
  await waiting(page).waitFor({ state: "detached" });
});

test("an interrupt stops what is written, which stays as a part", async () => {
  const [page] = await working();
  await writeAs(page, "Interrupt", "Stop and do this");
  const next = await its.model.request();
  expect(next.body).toContain("Stop and do this");
  next.say("Now this.").end();
  await page.getByText("Now this.").waitFor();
  await page.getByText("Not complete:").waitFor();
  await page.getByText("I have begun.").waitFor();
});

test("queued messages are edited and removed while they wait, and sent when the session is idle", async () => {
  const [page, answer] = await working();
  await writeAs(page, "Queue", "first of the queue");
  await waiting(page).getByText("first of the queue").waitFor();
  await writeAs(page, "Queue", "second of the queue");
  const second = waiting(page).getByRole("listitem").filter({ hasText: "second of the queue" });
  await second.waitFor();
  await picture(page, "queue");
  await second.getByRole("button", { name: "Remove" }).click();
  await second.waitFor({ state: "detached" });
  await waiting(page).getByRole("button", { name: "Edit" }).click();
  await waiting(page).getByRole("textbox").fill("edited of the queue");
  await waiting(page).getByRole("button", { name: "Save" }).click();
  await waiting(page).getByText("edited of the queue").waitFor();
  answer.end();
  const next = await its.model.request();
  expect(next.body).toContain("edited of the queue");
  expect(next.body).not.toMatch(/(first|second) of the queue/);
  next.say("Done.").end();
  await page.getByText("Done.").waitFor();
});

test("a message that waits is taken back to the field, in front of what is written there", async () => {
  const [page, answer] = await working();
  await writeAs(page, "Queue", "back to me");
  const field = page.getByRole("textbox", { name: "Message", exact: true });
  await field.fill("and this");
  await waiting(page).getByRole("button", { name: "Take back" }).click();
  await waiting(page).waitFor({ state: "detached" });
  expect(await field.inputValue()).toBe("back to me\nand this");
  expect(await field.evaluate((one) => one === document.activeElement)).toBe(true);
  answer.end();
  await page.getByText("Working …").waitFor({ state: "detached" });
  await field.press("Enter");
  const next = await its.model.request();
  expect(next.body).toContain("back to me\\nand this");
  next.say("Both.").end();
  await page.getByText("Both.").waitFor();
});

test("a message with an attachment is not taken back to the field, which takes text alone", async () => {
  const [page, answer] = await working();
  await writeAs(page, "Queue", "without a picture");
  const id = decodeURIComponent(new URL(page.url()).hash.slice(2));
  const attachments = [{ name: "dot.png", media_type: "image/png", source: DOT }];
  await new TidegateClient({ baseUrl: its.server.url }).session(id).send({ command: "queue", message: { id: "m", text: "with a picture", attachments } });
  const row = (text: string) => waiting(page).getByRole("listitem").filter({ hasText: text });
  await row("without a picture").getByRole("button", { name: "Take back" }).waitFor();
  await row("with a picture").getByRole("button", { name: "Remove" }).click({ trial: true });
  expect(await row("with a picture").getByRole("button").allTextContents()).toEqual(["Edit", "Remove"]);
  await row("without a picture").getByRole("button", { name: "Remove" }).click();
  answer.end();
  const next = await its.model.request();
  expect(next.body).toContain("with a picture");
  expect(next.body).toContain(DOT);
  next.say("I see it.").end();
  await page.getByText("I see it.").waitFor();
});

test("a cancel leaves the queue, and the conversation continues", async () => {
  const [page] = await working();
  await writeAs(page, "Queue", "for later");
  await waiting(page).getByText("for later").waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Continue" }).waitFor();
  await waiting(page).getByText("for later").waitFor();
  await page.getByRole("button", { name: "Send now" }).click();
  const next = await its.model.request();
  expect(next.body).toContain("for later");
  next.say("Later is now.").end();
  await page.getByText("Later is now.").waitFor();
});

test("the server is killed and started again", async () => {
  const [page, answer] = await working();
  await its.server.kill();
  await page.getByText("The connection is lost.").waitFor();
  answer.response.destroy();
  await its.server.start();
  await page.getByRole("button", { name: "Continue" }).click({ timeout: 30_000 });
  (await its.model.request()).say("Here I am again.").end();
  await page.getByText("Here I am again.").waitFor();
  await page.getByText("The connection is lost.").waitFor({ state: "detached" });
});

test("what is written while the server is gone is sent when it is back", { timeout: 60_000 }, async () => {
  const [page, answer] = await working();
  await its.server.kill();
  await page.getByText("The connection is lost.").waitFor();
  await page.getByText("Working …").waitFor({ state: "detached" });
  await writeAs(page, "Steer", "written meanwhile");
  await waiting(page).getByText("written meanwhile").waitFor();
  await picture(page, "gone");
  answer.response.destroy();
  // Longer than a command is repeated without a connection.
  await new Promise((done) => setTimeout(done, 5_000));
  await waiting(page).getByText("is sent when the connection is back").waitFor();
  await its.server.start();
  const next = await its.model.request(45_000);
  expect(next.body).toContain("written meanwhile");
  next.say("I have it.").end();
  await page.getByText("I have it.").waitFor();
  await waiting(page).waitFor({ state: "detached" });
  expect(await page.locator(".message.user").allTextContents()).toEqual([expect.stringContaining("Begin"), expect.stringContaining("written meanwhile")]);
});
