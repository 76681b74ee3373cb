import { type ChildProcess, execFile, spawn } from "node:child_process";
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const HERE = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);

/** Returns a port that nobody listens at. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

/** Packs the packages. */
export async function pack(): Promise<void> {
  const packs = join(folder(), "packs");
  rmSync(packs, { recursive: true, force: true });
  mkdirSync(packs);
  for (const name of ["client", "react"]) {
    await run("npm", ["pack", "--pack-destination", packs], { cwd: join(HERE, "..", name) });
  }
}

/** Installs the packed packages in a copy of an example, and returns its folder. All else that it needs is above. */
export async function install(example: string): Promise<string> {
  const at = join(folder(), example);
  rmSync(at, { recursive: true, force: true });
  cpSync(join(HERE, example), at, { recursive: true });
  await run("npm", ["install", "--offline", "--ignore-scripts"], { cwd: at });
  return at;
}

/** Runs a program with what is installed above the examples. Returns what it has written. */
export async function output(program: readonly [string, ...string[]], cwd: string): Promise<string> {
  const [file, ...given] = program;
  return (await run(file, given, { cwd, timeout: 60_000 })).stdout;
}

/** Returns where a file of a package above the examples is. */
export function installed(path: string): string {
  return join(folder(), "node_modules", path);
}

/** An example, built with the packed packages and served. */
export class Built {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(url: string, child: ChildProcess) {
    this.url = url;
    this.#child = child;
  }

  static async start(example: string, port: number, env: Record<string, string>): Promise<Built> {
    const at = await install(example);
    const options = { cwd: at, env: { ...process.env, NODE_ENV: "production", NEXT_TELEMETRY_DISABLED: "1", ...env } };
    await run("npm", ["run", "build"], options);
    const child = spawn("npm", ["start", "--", "--port", String(port)], { ...options, stdio: "ignore", detached: true });
    const url = `http://localhost:${port}`;
    await answered(url);
    return new Built(url, child);
  }

  /** Ends the server and what it started. */
  async stop(): Promise<void> {
    const ended = new Promise((done) => this.#child.once("exit", done));
    process.kill(-this.#child.pid!, "SIGTERM");
    await ended;
  }
}

function folder(): string {
  return process.env["EXAMPLES"]!;
}

async function answered(url: string): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      await fetch(url, { redirect: "manual" });
      return;
    } catch (error) {
      if (attempt >= 300) throw error;
      await new Promise((done) => setTimeout(done, 100));
    }
  }
}
