import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";

test("the types are those of the schemas", () => {
  expect(() => execFileSync("node", ["generate.mjs", "check"], { stdio: "inherit" })).not.toThrow();
});
