import { expect, test } from "vitest";
import { newSession, write } from "./support/browser.js";
import { suite } from "./support/suite.js";

const TOKEN = "0123456789abcdef0123456789abcdef";
const its = suite(`[[serve.token]]\nname = "anna"\nvalue = "env:ANNA_TOKEN"\n`, { ANNA_TOKEN: TOKEN });

test("a wrong token is refused and asked for again, and the right one is kept in the tab", async () => {
  const page = await its.open();
  const field = page.getByLabel("Token", { exact: true });
  for (const wrong of ["wrong", `${TOKEN}x`]) {
    await field.fill(wrong);
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("The server does not know this token.").waitFor();
    expect(await page.getByRole("button", { name: "New session" }).count()).toBe(0);
  }
  await field.fill(TOKEN);
  await page.getByRole("button", { name: "Continue" }).click();
  await newSession(page);
  await write(page, "Hello");
  (await its.model.request()).say("An answer for Anna.").end();
  await page.getByText("An answer for Anna.").waitFor();
  await page.reload();
  await page.getByText("An answer for Anna.").waitFor();
  expect(page.url()).not.toContain(TOKEN);
});

test("an address of a session that does not exist is reported", async () => {
  const page = await its.open({ hash: "#/no-such-session" });
  await page.getByLabel("Token", { exact: true }).fill(TOKEN);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText("This session does not exist").waitFor();
});
