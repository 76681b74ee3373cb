import { expect, test } from "vitest";
import { newSession, picture, write } from "./support/browser.js";
import { suite } from "./support/suite.js";

const its = suite();

test("a prompt, and an answer while it is written", async () => {
  const page = await its.open();
  await newSession(page);
  await write(page, "Write **something**");
  const answer = await its.model.request();
  answer.say("The first ").say("half, ");
  await page.getByText("The first half,").waitFor();
  await page.getByText("Working …").waitFor();
  answer.say("and **the rest**.").end();
  await page.getByText("and the rest.").waitFor();
  expect(await page.locator(".message.assistant strong").textContent()).toBe("the rest");
  expect(await page.locator(".message.user").textContent()).toContain("Write **something**");
  await page.getByText("Working …").waitFor({ state: "detached" });
});

test("a rule stops an answer: what was shown of it is struck through, and the rest never arrives", async () => {
  const page = await its.open();
  await newSession(page);
  await write(page, "Go on");
  const first = await its.model.request();
  first.say("A start that is shown. ");
  await page.getByText("A start that is shown.").waitFor();
  first.say("Then forbidden-123 and more");
  const second = await its.model.request();
  expect(second.body).toContain("Never say that word.");
  second.say("Another answer.").end();
  await page.getByText("Another answer.").waitFor();
  expect(await page.locator("del").textContent()).toContain("A start that is shown.");
  await page.getByText("matched in the text").waitFor();
  await page.getByText("The model was reminded of no-numbers").waitFor();
  await picture(page, "rule");
  expect(await page.content()).not.toMatch(/forbidden|Never say/);
});

test("a reload in the middle of a turn shows what was written, and what follows", async () => {
  const page = await its.open();
  await newSession(page);
  await write(page, "Go on");
  const answer = await its.model.request();
  answer.say("Before the reload. ");
  await page.getByText("Before the reload.").waitFor();
  await page.reload();
  await page.getByText("Before the reload.").waitFor();
  answer.say("After the reload.").end();
  await page.getByText("After the reload.").waitFor();
  expect(await page.locator(".message").count()).toBe(2);
});

test("two browsers on one session show the same, and one answers for both", async () => {
  const one = await its.open();
  await newSession(one);
  const other = await its.open({ hash: new URL(one.url()).hash });
  await write(one, "Write a file");
  (await its.model.request()).call("write_file", { path: "two.txt", content: "x" }).end();
  await one.getByRole("button", { name: "Approve" }).waitFor();
  await other.getByRole("button", { name: "Approve" }).click();
  (await its.model.request()).say("It is written.").end();
  for (const page of [one, other]) {
    await page.getByText("It is written.").waitFor();
    expect(await page.getByRole("button", { name: "Approve" }).count()).toBe(0);
    expect(await page.locator(".message").count()).toBe(3);
  }
});

test("a session is forked, exported and deleted", async () => {
  const page = await its.open();
  await newSession(page);
  await write(page, "To be forked");
  (await its.model.request()).say("An answer.").end();
  await page.getByText("An answer.").waitFor();
  const menu = () => page.getByRole("button", { name: "Session", exact: true }).click();
  await menu();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Export as Markdown" }).click(),
  ]);
  expect(download.suggestedFilename()).toMatch(/\.md$/);
  const before = page.url();
  await menu();
  await page.getByRole("button", { name: "Fork" }).click();
  await page.waitForURL((url) => url.href !== before);
  await page.getByText("An answer.").waitFor();
  await menu();
  await page.getByRole("button", { name: "Delete …" }).click();
  await page.getByRole("button", { name: "Delete it with its transcript" }).click();
  await page.getByText("Choose a session").waitFor();
});
