import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A model whose answers a test writes while they are read. */
export class Model {
  readonly #server: Server;
  readonly #waiting: ((answer: Answer) => void)[] = [];
  readonly #arrived: Answer[] = [];

  private constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(): Promise<Model> {
    const model = new Model();
    await new Promise<void>((done) => model.#server.listen(0, "127.0.0.1", done));
    return model;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The next request, whose answer is to be written. It must be there within `ms`. */
  async request(ms = 15_000): Promise<Answer> {
    const answer = this.#arrived.shift();
    return answer ?? new Promise((done, failed) => {
      const timer = setTimeout(() => failed(new Error("the model is not asked")), ms);
      this.#waiting.push((arrived) => {
        clearTimeout(timer);
        done(arrived);
      });
    });
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    const answer = new Answer(Buffer.concat(parts).toString(), response);
    const waiting = this.#waiting.shift();
    if (waiting) waiting(answer);
    else this.#arrived.push(answer);
  }
}

/** An answer in the wire format of OpenAI Chat Completions. */
export class Answer {
  #calls = 0;

  constructor(
    /** The request as JSON. */
    readonly body: string,
    readonly response: ServerResponse,
  ) {}

  say(text: string): this {
    return this.#chunk({ delta: { content: text } });
  }

  call(tool: string, given: object): this {
    const index = this.#calls++;
    const call = { index, id: `call-${index}-${Math.random()}`, type: "function", function: { name: tool, arguments: JSON.stringify(given) } };
    return this.#chunk({ delta: { tool_calls: [call] } });
  }

  end(): void {
    const usage = { prompt_tokens: 1200, completion_tokens: 80 };
    this.#chunk({ delta: {}, finish_reason: this.#calls > 0 ? "tool_calls" : "stop" });
    this.#write({ choices: [], usage });
    this.response.end("data: [DONE]\n\n");
  }

  #chunk(choice: object): this {
    this.#write({ model: "scripted", choices: [{ index: 0, ...choice }] });
    return this;
  }

  #write(content: object): void {
    this.response.write(`data: ${JSON.stringify(content)}\n\n`);
  }
}
