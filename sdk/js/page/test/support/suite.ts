import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { launch, open, type Options } from "./browser.js";
import { Model } from "./model.js";
import { Tidegate } from "./tidegate.js";

/** What the tests of a file share: a browser, a model, and a server with settings. */
export interface Suite {
  readonly model: Model;
  readonly server: Tidegate;
  /** Opens the page in a browser of its own. At the end of the test it must not have reported errors. */
  open(options?: Omit<Options, "url"> & { readonly hash?: string }): Promise<Page>;
}

/** Starts them before the tests of a file, and ends them after. */
export function suite(settings = "", variables: Readonly<Record<string, string>> = {}): Suite {
  let browser: Browser;
  let model: Model;
  let server: Tidegate;
  const errors: string[] = [];
  beforeAll(async () => {
    [browser, model] = await Promise.all([launch(), Model.start()]);
    server = await Tidegate.start(model, settings, variables);
  });
  afterEach(async () => {
    await Promise.all(browser.contexts().map((context) => context.close()));
    expect(errors.splice(0)).toEqual([]);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
    model?.stop();
  });
  return {
    get model() {
      return model;
    },
    get server() {
      return server;
    },
    async open({ hash = "", ...options } = {}) {
      return open(browser, { ...options, url: server.url + hash }, errors);
    },
  };
}
