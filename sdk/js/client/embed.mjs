// Writes the module of the primitives, as cargo has built it, where the package imports it: `node embed.mjs MODULE.wasm`.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const [, , module] = process.argv;
const folder = new URL("src/generated/", import.meta.url);
mkdirSync(folder, { recursive: true });
const hex = readFileSync(module).toString("hex");
writeFileSync(new URL("module.ts", folder), `/** The module of the primitives, in hexadecimal digits. */\nexport const module: string = "${hex}";\n`);
