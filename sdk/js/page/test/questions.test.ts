import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { Answer } from "./support/model.js";
import { newSession, picture, write } from "./support/browser.js";
import { suite } from "./support/suite.js";

const its = suite();

/** Has the model call a tool, and returns the question. */
async function asked(page: Page, tool: string, given: object) {
  await newSession(page);
  await write(page, "Do it");
  (await its.model.request()).say("I do it.").call(tool, given).end();
  const question = page.getByRole("region", { name: tool });
  await question.waitFor();
  return question;
}

async function ends(page: Page): Promise<Answer> {
  const answer = await its.model.request();
  answer.say("That is all.").end();
  await page.getByText("That is all.").waitFor();
  return answer;
}

const contentOf = (name: string) => readFileSync(join(its.server.folder, name), "utf8");

test("a question shows every argument and the change, and approval runs the call", async () => {
  its.server.write("a.txt", "one\ntwo\nthree\n");
  const page = await its.open();
  const question = await asked(page, "edit_file", { path: "a.txt", old_text: "two", new_text: "2" });
  for (const shown of ["path", "a.txt", "old_text", "new_text"]) expect(await question.textContent()).toContain(shown);
  expect(await question.locator(".diff").textContent()).toMatch(/-two[^]*\+2/);
  expect(await page.evaluate(() => document.activeElement?.textContent)).not.toContain("Approve");
  await picture(page, "question");
  await question.getByRole("button", { name: "Approve" }).click();
  await ends(page);
  expect(contentOf("a.txt")).toBe("one\n2\nthree\n");
  expect(await page.locator(".tool .diff").textContent()).toContain("+2");
});

for (const width of [1280, 360]) {
  test(`a long question leaves the field for messages in sight: ${width} pixels`, async () => {
    const page = await its.open({ width });
    const content = Array.from({ length: 400 }, (_, index) => `line ${index}`).join("\n");
    const question = await asked(page, "write_file", { path: `long-${width}.txt`, content });
    const field = page.getByRole("textbox", { name: "Message", exact: true });
    const isInSight = async () => {
      const [box, send] = [await field.boundingBox(), await page.getByRole("button", { name: "Send" }).boundingBox()];
      return [box, send].every((one) => one !== null && one.y >= 0 && one.y + one.height <= 800);
    };
    expect(await isInSight()).toBe(true);
    await picture(page, `long-question-${width}`);
    await question.getByRole("button", { name: "Approve" }).scrollIntoViewIfNeeded();
    expect(await isInSight()).toBe(true);
    await page.getByRole("radio", { name: "Queue" }).check();
    await field.fill("Line\n".repeat(30));
    expect(await isInSight()).toBe(true);
    await question.getByRole("button", { name: "Deny …" }).click();
    await question.getByRole("button", { name: "Deny", exact: true }).click();
    await ends(page);
  });
}

test("`always` runs this call and later ones like it without a question", async () => {
  const page = await its.open();
  const question = await asked(page, "write_file", { path: "always.txt", content: "one" });
  await question.getByRole("button", { name: /^Always allow/ }).click();
  const next = await its.model.request();
  expect(contentOf("always.txt")).toBe("one");
  next.call("write_file", { path: "always.txt", content: "two" }).end();
  await ends(page);
  expect(contentOf("always.txt")).toBe("two");
  expect(await page.getByRole("button", { name: "Approve" }).count()).toBe(0);
});

test("a denial's reason reaches the model, and the call does not run", async () => {
  const page = await its.open();
  const question = await asked(page, "write_file", { path: "denied.txt", content: "x" });
  await question.getByRole("button", { name: "Deny …" }).click();
  await page.keyboard.type("not this file");
  await question.getByRole("button", { name: "Deny", exact: true }).click();
  expect((await ends(page)).body).toContain("not this file");
  expect(existsSync(join(its.server.folder, "denied.txt"))).toBe(false);
  await page.getByText("did not run").first().waitFor();
});

test("edited arguments are what runs", async () => {
  const page = await its.open();
  const question = await asked(page, "write_file", { path: "edited.txt", content: "proposed" });
  await question.getByRole("button", { name: "Edit arguments …" }).click();
  const field = question.getByRole("textbox");
  await field.fill("{");
  await question.getByText("This is not JSON").waitFor();
  await field.fill('{"path": "edited.txt", "content": "mine"}');
  await question.getByRole("button", { name: "Run with these" }).click();
  await ends(page);
  expect(contentOf("edited.txt")).toBe("mine");
});

test("an answer that is half written stays when another front end answers", async () => {
  const page = await its.open();
  const question = await asked(page, "write_file", { path: "half.txt", content: "x" });
  await question.getByRole("button", { name: "Deny …" }).click();
  await page.keyboard.type("because it");
  const other = await its.open({ hash: new URL(page.url()).hash });
  await other.getByRole("button", { name: "Approve" }).click();
  await page.getByText("It was answered elsewhere.").waitFor();
  expect(await question.getByRole("textbox").inputValue()).toBe("because it");
  await ends(page);
  await question.getByRole("button", { name: "Dismiss" }).click();
  await question.waitFor({ state: "detached" });
});
