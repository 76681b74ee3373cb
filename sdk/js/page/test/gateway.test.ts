import { expect, test } from "vitest";
import { picture } from "./support/browser.js";
import { suite } from "./support/suite.js";

const its = suite(`[transcript]
enabled = true
[gateway]
[[gateway.route]]
path = "/"
upstream = "http://127.0.0.1:1/v1"
`);

interface Said {
  readonly role: "user" | "assistant";
  readonly content: string;
}

/** One request of a client of the gateway. Returns the text of the answer. */
async function ask(gateway: string, messages: readonly Said[]): Promise<string> {
  const body = JSON.stringify({ model: "scripted", stream: true, messages });
  const answer = await fetch(`${gateway}/chat/completions`, { method: "POST", headers: { "content-type": "application/json" }, body });
  const lines = (await answer.text()).split("\n").filter((line) => line.startsWith("data: {"));
  return lines.map((line) => JSON.parse(line.slice(6)).choices[0]?.delta.content ?? "").join("");
}

test("a conversation of the gateway is listed and grows on the page, where nothing can be written", async () => {
  its.server.write("tidegate.toml", its.server.settings.replace("http://127.0.0.1:1/v1", its.model.baseUrl));
  const gateway = await its.server.gateway();
  const first: Said = { role: "user", content: "Which number is it?" };
  const asked = ask(gateway, [first]);
  (await its.model.request()).say("It is forbidden-7.").end();
  (await its.model.request()).say("It is seven.").end();
  const answer = await asked;
  expect(answer).toContain("It is seven.");
  const page = await its.open();
  const entry = page.getByRole("link", { name: /Which number is it/ });
  expect(await entry.textContent()).toContain("gateway");
  await entry.click();
  const log = page.getByRole("region", { name: "Conversation" });
  await log.getByText("It is seven.").waitFor();
  await page.getByText("This is a conversation of the gateway.").waitFor();
  expect(await page.getByRole("textbox", { name: "Message" }).count()).toBe(0);
  expect(await page.content()).not.toContain("forbidden-7");
  const next = ask(gateway, [first, { role: "assistant", content: answer }, { role: "user", content: "And the next?" }]);
  (await its.model.request()).say("It is eight.").end();
  await next;
  await log.getByText("It is eight.").waitFor();
  await log.getByText("And the next?").waitFor();
  await page.getByRole("button", { name: "Activity" }).click();
  await page.getByText("no-numbers").first().waitFor();
  await picture(page, "gateway");
});
