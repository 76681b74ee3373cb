import { cleanup } from "@testing-library/react";
import { version } from "react";
import { afterEach, expect, vi } from "vitest";

expect(version.split(".")[0], "the version of React that is tested").toBe(process.env["REACT"]);

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});
