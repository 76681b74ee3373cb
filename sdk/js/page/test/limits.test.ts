import { expect, test } from "vitest";
import { newSession, write } from "./support/browser.js";
import { suite } from "./support/suite.js";

const its = suite("[limits.session]\nsteps = 1\n");

test("a limit is asked about, also where its event is not kept any more, and raising it continues the turn", async () => {
  const page = await its.open();
  await newSession(page);
  await write(page, "Look");
  const answer = await its.model.request();
  // More than the server keeps for those who connect later.
  for (let part = 0; part < 1100; part += 1) answer.say(`word ${part} `);
  answer.call("list_dir", { path: "." }).end();
  await page.getByText("Limit reached:").waitFor();
  await page.reload();
  await page.getByText("Limit reached:").waitFor();
  expect(await page.getByRole("textbox", { name: "New limit" }).inputValue()).toBe("3");
  await page.getByRole("button", { name: "Raise it" }).click();
  (await its.model.request()).say("That is all.").end();
  await page.getByText("That is all.").waitFor();
  expect(await page.getByText("Limit reached:").count()).toBe(0);
});
