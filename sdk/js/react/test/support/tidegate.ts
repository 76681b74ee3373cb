import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** A part of a recorded answer: text, or a call of a tool. */
export type Part = { readonly text: string } | { readonly tool: string; readonly arguments: object };

export type Answer = readonly Part[];

interface Given {
  /** 0: any. */
  readonly port?: number;
  /** As in `tidegate.toml`. */
  readonly settings?: string;
}

/** `tidegate serve` with a recording in the place of a model. */
export class Tidegate {
  readonly #folder = mkdtempSync(join(tmpdir(), "tidegate-react-"));
  #child: ChildProcess | undefined;
  #baseUrl = "";

  private constructor(answers: readonly Answer[]) {
    writeFileSync(join(this.#folder, "recording.jsonl"), recording(answers));
  }

  get baseUrl(): string {
    return this.#baseUrl;
  }

  /** Starts the program that `TIDEGATE` in the environment names. */
  static async start(answers: readonly Answer[], given: Given = {}): Promise<Tidegate> {
    const server = new Tidegate(answers);
    await server.start(given);
    return server;
  }

  /** Starts it, also again. The recording begins again then. */
  async start({ port = 0, settings = "" }: Given = {}): Promise<void> {
    const [folder, file] = [this.#folder, join(this.#folder, "settings.toml")];
    writeFileSync(file, settings);
    const given = ["serve", "--listen", `127.0.0.1:${port}`, "--workspace", folder, "--config", file];
    given.push("--recording", join(folder, "recording.jsonl"));
    const env = { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder, XDG_STATE_HOME: folder };
    const child = spawn(process.env["TIDEGATE"] ?? "tidegate", given, { env, stdio: ["ignore", "pipe", "inherit"] });
    this.#child = child;
    this.#baseUrl = await new Promise<string>((done, failed) => {
      child.once("error", failed);
      child.once("exit", (code) => failed(new Error(`tidegate serve ended with ${code}`)));
      createInterface(child.stdout).once("line", done);
    });
  }

  /** Ends it as a machine does that loses its power. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((done) => child.once("exit", done));
    child.kill(signal);
    await ended;
  }

  async stop(): Promise<void> {
    await this.kill("SIGTERM");
    rmSync(this.#folder, { recursive: true });
  }
}

function recording(answers: readonly Answer[]): string {
  const lines: object[] = [{ tidegate_recording: 3, wire: "openai-chat", model: "any" }];
  for (const parts of answers) {
    lines.push({ request: {} }, { response: 200, headers: { "content-type": "text/event-stream" } });
    for (const part of parts) lines.push(chunk({ delta: deltaOf(part) }));
    const finish_reason = parts.some((part) => "tool" in part) ? "tool_calls" : "stop";
    lines.push(chunk({ delta: {}, finish_reason }), { text: "data: [DONE]\n\n" }, { end: "complete" });
  }
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

function chunk(choice: object): object {
  return { text: `data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n` };
}

function deltaOf(part: Part): object {
  if ("text" in part) return { content: part.text };
  const call = { name: part.tool, arguments: JSON.stringify(part.arguments) };
  return { tool_calls: [{ index: 0, id: "call-1", type: "function", function: call }] };
}
