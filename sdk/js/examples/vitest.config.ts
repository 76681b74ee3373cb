import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

export default defineConfig({
  test: {
    env: {
      TIDEGATE: process.env["TIDEGATE"] ?? path("../../../target/debug/tidegate"),
      // Where package-lock.json is installed, and where the examples are built.
      EXAMPLES: process.env["EXAMPLES"] ?? path("."),
    },
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
