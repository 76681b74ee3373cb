import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** A part of a recorded answer: text, or a call of a tool. */
export type Part = { readonly text: string } | { readonly tool: string; readonly arguments: object };

export type Answer = readonly Part[];

/** `tidegate serve` with a recording in the place of a model. */
export class Tidegate {
  readonly baseUrl: string;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(baseUrl: string, child: ChildProcess, folder: string) {
    this.baseUrl = baseUrl;
    this.#child = child;
    this.#folder = folder;
  }

  /** Starts the program that `TIDEGATE` in the environment names, at a port (0: any) and with settings as in `tidegate.toml`. */
  static async start(answers: readonly Answer[], { port = 0, settings = "" } = {}): Promise<Tidegate> {
    const folder = mkdtempSync(join(tmpdir(), "tidegate-react-"));
    writeFileSync(join(folder, "recording.jsonl"), recording(answers));
    writeFileSync(join(folder, "settings.toml"), settings);
    const given = ["serve", "--listen", `127.0.0.1:${port}`, "--workspace", folder, "--config", join(folder, "settings.toml")];
    given.push("--recording", join(folder, "recording.jsonl"));
    const env = { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder, XDG_STATE_HOME: folder };
    const child = spawn(process.env["TIDEGATE"] ?? "tidegate", given, { env, stdio: ["ignore", "pipe", "inherit"] });
    const baseUrl = await new Promise<string>((done, failed) => {
      child.once("error", failed);
      child.once("exit", (code) => failed(new Error(`tidegate serve ended with ${code}`)));
      createInterface(child.stdout).once("line", done);
    });
    return new Tidegate(baseUrl, child, folder);
  }

  async stop(): Promise<void> {
    const ended = new Promise((done) => this.#child.once("exit", done));
    this.#child.kill("SIGTERM");
    await ended;
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
