import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));
/** The program that tests talk with. */
const TIDEGATE = process.env["TIDEGATE"] ?? path("../../../target/debug/tidegate");

const packages = ["react", "react-dom", "@testing-library/react"];
const alias = packages.map((name) => ({
  find: new RegExp(`^${name}(?=/|$)`),
  replacement: path("react-18/node_modules/") + name,
}));

const test = { environment: "jsdom", setupFiles: ["test/support/setup.ts"] };
export default defineConfig({
  test: {
    projects: [
      { test: { ...test, name: "React 19", env: { REACT: "19", TIDEGATE } } },
      { test: { ...test, name: "React 18", env: { REACT: "18", TIDEGATE } }, resolve: { alias } },
    ],
  },
});
