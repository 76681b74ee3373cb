import axe from "axe-core";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { newSession, picture, write } from "./support/browser.js";
import { suite } from "./support/suite.js";

const its = suite();

/** What a checker of accessibility finds in the page as it is. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const found = await page.evaluate(async () => (window as unknown as { axe: typeof axe }).axe.run());
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(", ")}`);
}

/** A session with a stopped answer, a call that ran, a question, and a message that waits. */
async function everything(page: Page): Promise<void> {
  await newSession(page);
  await write(page, "Write **two** files");
  (await its.model.request()).say("I begin. forbidden-1");
  (await its.model.request()).say("# A title\n\n- one\n- two\n\n```\ncode\n```").call("list_dir", { path: "." }).end();
  (await its.model.request()).call("write_file", { path: "two.txt", content: "x".repeat(200) }).end();
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await page.getByRole("radio", { name: "Queue" }).check();
  await write(page, "and then another");
  await page.getByText("waits, when idle").waitFor();
}

for (const dark of [false, true]) {
  for (const width of [1280, 360]) {
    test(`it is accessible and fits: ${dark ? "dark" : "light"}, ${width} pixels`, async () => {
      const page = await its.open({ dark, width });
      const name = `${dark ? "dark" : "light"}-${width}`;
      expect(await violations(page)).toEqual([]);
      await picture(page, `sessions-${name}`);
      await everything(page);
      expect(await violations(page)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
      await picture(page, `chat-${name}`);
      await page.getByRole("button", { name: "Activity" }).click();
      expect(await violations(page)).toEqual([]);
      await picture(page, `activity-${name}`);
    });
  }
}

/** Text that is markup, an address or an order of characters elsewhere. */
const HOSTILE = [
  "<script>window.hit = 1</script>",
  "<img src=x onerror='window.hit = 1'>",
  "[link](javascript:window.hit=1)",
  "[data](data:text/html,<script>window.hit=1</script>)",
  "![image](https://elsewhere.example/pixel.png)",
  "<iframe srcdoc='<script>parent.hit = 1</script>'></iframe>",
  "\u202egnirts\u202c",
].join("\n\n");

test("script in every field stays text", async () => {
  const page = await its.open();
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  await newSession(page);
  await write(page, HOSTILE);
  (await its.model.request()).say(HOSTILE).call("write_file", { path: HOSTILE, content: HOSTILE }).end();
  await page.getByRole("button", { name: "Deny" }).waitFor();
  await picture(page, "hostile");
  await page.getByRole("button", { name: "Deny" }).click();
  await page.getByRole("textbox", { name: /reason/i }).fill(HOSTILE);
  await page.getByRole("button", { name: "Deny", exact: true }).last().click();
  (await its.model.request()).say(HOSTILE).end();
  await page.getByText("Working …").waitFor({ state: "detached" });
  await page.reload();
  await page.locator(".message.assistant").first().waitFor();
  expect(await page.evaluate(() => (window as unknown as { hit?: number }).hit)).toBeUndefined();
  expect(await page.locator("a[href^='javascript:'], a[href^='data:'], iframe, main img[src^='http']").count()).toBe(0);
  expect(asked.filter((url) => url.includes("elsewhere.example"))).toEqual([]);
});
