import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";

/** Where pictures of the page are put, for a person to look at. */
const PICTURES = fileURLToPath(new URL("../../../../../target/page-pictures/", import.meta.url));
const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export async function launch(): Promise<Browser> {
  const given = process.env["CHROMIUM"];
  for (const executablePath of given === undefined ? PLACES : [given]) {
    try {
      return await chromium.launch({ executablePath, args: ARGUMENTS, headless: true });
    } catch (error) {
      if (!String(error).includes("doesn't exist")) throw error;
    }
  }
  throw new Error("Chromium is missing; install it with: apt-get install -y chromium, or name it in CHROMIUM");
}

export interface Options {
  readonly width?: number;
  readonly dark?: boolean;
  readonly url: string;
}

/** A tab of a browser of its own. What it reports as errors is added to a list. */
export async function open(browser: Browser, { width = 1280, dark = false, url }: Options, errors: string[]): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width, height: 800 },
    colorScheme: dark ? "dark" : "light",
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => {
    // The network reports these itself, and the page shows what comes of them.
    const isOfNetwork = /Failed to load resource|net::ERR_/.test(message.text());
    if (message.type() === "error" && !isOfNetwork) errors.push(message.text());
  });
  await page.goto(url);
  return page;
}

export async function picture(page: Page, name: string): Promise<void> {
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: `${PICTURES}${name}.png` });
}

export async function newSession(page: Page): Promise<void> {
  await page.getByRole("button", { name: "New session" }).click();
  await page.getByRole("textbox", { name: "Message" }).waitFor();
}

export async function write(page: Page, text: string): Promise<void> {
  const field = page.getByRole("textbox", { name: "Message", exact: true });
  await field.fill(text);
  await field.press("Enter");
}
