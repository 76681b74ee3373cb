import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { Tidegate } from "../../react/test/support/tidegate.js";
import { Built, freePort, install, installed, output, pack } from "./support/built.js";

const WRITE = { tool: "write_file", arguments: { path: "a.txt", content: "Hello" } };
const ANSWERS = [[{ text: "I write " }, { text: "it." }, WRITE], [{ text: "It is " }, { text: "written." }]];

let browser: Browser;
const stops: (() => Promise<void>)[] = [];

beforeAll(async () => {
  const quiet = ["background-networking", "component-update", "sync"].map((name) => `--disable-${name}`);
  const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", ...quiet];
  browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args });
  await pack();
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
afterAll(() => browser.close());

/** Starts the server and an example that calls it, and opens its page. Returns the page and what it complained about. */
async function open(example: string, variable: string): Promise<{ page: Page; complaints: string[] }> {
  const [port, server] = [await freePort(), await freePort()];
  const origins = `[serve]\norigins = ["http://localhost:${port}"]\n`;
  const tidegate = await Tidegate.start(ANSWERS, { port: server, settings: origins });
  stops.push(() => tidegate.stop());
  const built = await Built.start(example, port, { [variable]: tidegate.baseUrl });
  stops.push(() => built.stop());
  const page = await browser.newPage();
  stops.push(() => page.close());
  const complaints: string[] = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(built.url);
  return { page, complaints };
}

/** A turn with a question, and the same chat after the page was loaded again. */
async function chat(page: Page): Promise<void> {
  const shown = ["Write a.txt", "I write it.", "It is written."];
  await page.getByLabel("Message").fill("Write a.txt");
  await page.getByLabel("Message").press("Enter");
  await page.getByRole("button", { name: "Allow" }).click();
  await page.getByText("It is written.").waitFor();
  expect(await page.getByRole("listitem").allTextContents()).toEqual(shown);
  await page.reload();
  await page.getByText("It is written.").waitFor();
  expect(await page.getByRole("listitem").allTextContents()).toEqual(shown);
}

test("Vite", async () => {
  const { page, complaints } = await open("vite", "VITE_TIDEGATE");
  await chat(page);
  expect(complaints).toEqual([]);
});

test("Next.js", async () => {
  const { page, complaints } = await open("next", "NEXT_PUBLIC_TIDEGATE");
  const rendered = await (await fetch(page.url())).text();
  expect(rendered).toContain("<output>idle</output>");
  await chat(page);
  expect(complaints).toEqual([]);
});

const BUN = `@oven/bun-${process.platform}-${process.arch === "arm64" ? "aarch64" : process.arch}/bin/bun`;

test.each([
  ["Node", () => ["node"] as const],
  ["Deno", () => ["node", installed("deno/bin.cjs"), "run", "--allow-net"] as const],
  ["Bun", () => [installed(BUN)] as const],
])("the console, with %s", async (_, runtime) => {
  const tidegate = await Tidegate.start(ANSWERS);
  stops.push(() => tidegate.stop());
  const at = await install("console");
  const [file, ...given] = runtime();
  const said = await output([file, ...given, "chat.mjs", tidegate.baseUrl, "Write a.txt"], at);
  expect(said.trim().split("\n")).toEqual(["user: Write a.txt", "assistant: I write it.", "assistant: It is written."]);
});
