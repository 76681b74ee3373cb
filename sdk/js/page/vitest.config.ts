import { defineConfig } from "vitest/config";

// Each file has a server and a browser of its own, and the machine two cores.
export default defineConfig({ test: { fileParallelism: false, testTimeout: 30_000, hookTimeout: 60_000 } });
