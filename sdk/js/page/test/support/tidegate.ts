import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import type { Model } from "./model.js";

/** A rule that stops an answer. */
const RULE = `+++
condition = "forbidden-[0-9]+"
scope = ["text", "tool"]
repeat = "always"
+++
Never say that word.
`;

/** `tidegate serve` in a folder of its own, with a model of the test. */
export class Tidegate {
  readonly folder = mkdtempSync(join(tmpdir(), "tidegate-page-"));
  readonly settings: string;
  #child: ChildProcess | undefined;
  #gateway: ChildProcess | undefined;
  #listen = "127.0.0.1:0";

  private constructor(model: Model, more: string) {
    this.settings = `[provider]
kind = "openai-chat"
model = "scripted"
base_url = "${model.baseUrl}"
api_key_env = ""
[rules]
builtin_rules = false
retry_delay_ms = 0
${more}`;
  }

  get url(): string {
    return `http://${this.#listen}/`;
  }

  /** Starts the program that `TIDEGATE` in the environment names. */
  static async start(model: Model, more = "", variables: Readonly<Record<string, string>> = {}): Promise<Tidegate> {
    const server = new Tidegate(model, more);
    server.write("tidegate.toml", server.settings);
    server.write(".tidegate/rules/no-numbers.md", RULE);
    await server.start(variables);
    return server;
  }

  /** Starts it again, with the address that it had. */
  async start(variables: Readonly<Record<string, string>> = {}): Promise<void> {
    const [child, address] = await this.#run("serve", this.#listen, variables);
    this.#child = child;
    this.#listen = address.replace("http://", "");
  }

  /** Starts a gateway next to it, and returns its address. */
  async gateway(): Promise<string> {
    const [child, address] = await this.#run("gateway", "127.0.0.1:0", {});
    this.#gateway = child;
    return address;
  }

  /** Returns the program once it has written its address. */
  async #run(command: string, listen: string, variables: Readonly<Record<string, string>>): Promise<[ChildProcess, string]> {
    const given = ["--trust-workspace", command, "--listen", listen, "--workspace", this.folder];
    const own = Object.fromEntries(["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"].map((name) => [name, join(this.folder, "home")]));
    const env = { ...process.env, ...own, ...variables };
    const child = spawn(process.env["TIDEGATE"] ?? "tidegate", given, { cwd: this.folder, env, stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    child.stderr.on("data", (part) => (said += part));
    const address = await new Promise<string>((done, failed) => {
      child.once("error", failed);
      child.once("exit", (code) => failed(new Error(`tidegate ${command} ended with ${code}: ${said}`)));
      createInterface(child.stdout).once("line", done);
    });
    return [child, address];
  }

  write(name: string, content: string): void {
    mkdirSync(dirname(join(this.folder, name)), { recursive: true });
    writeFileSync(join(this.folder, name), content);
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    await killed(this.#child, signal);
  }

  async stop(): Promise<void> {
    await this.kill("SIGTERM");
    await killed(this.#gateway, "SIGTERM");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

async function killed(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((done) => child.once("exit", done));
  child.kill(signal);
  await ended;
}
