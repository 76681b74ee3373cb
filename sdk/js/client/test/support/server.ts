import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach } from "vitest";
import { type ClientOptions, TidegateClient } from "../../src/index.js";

interface Request {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: any;
}

export type Answer = (request: Request, response: ServerResponse) => void;

const servers: Server[] = [];

/** A server that gives the answers of a script, one for each request of a method and path, the last one again and again. */
export async function scripted(script: { [key: string]: Answer[] }, wait = () => Promise.resolve(), options: ClientOptions = {}) {
  const requests: Request[] = [];
  const server = createServer(async (incoming, response) => {
    let body = "";
    for await (const piece of incoming) body += piece;
    const { method = "", url = "", headers } = incoming;
    const request = { method, url, headers, body: body === "" ? undefined : JSON.parse(body) };
    requests.push(request);
    const answers = script[`${method} ${url}`];
    const answer = answers && answers.length > 1 ? answers.shift() : answers?.[0];
    if (answer) answer(request, response);
    else problem(404, "not_found")(request, response);
  });
  servers.push(server);
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  const client = new TidegateClient({ baseUrl: `http://127.0.0.1:${port}/`, token: "secret", wait, ...options });
  return { client, requests };
}

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

export const json = (value: unknown, status = 200): Answer => (_, response) => {
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(value));
};

export const problem = (status: number, code: string): Answer => (_, response) => {
  const body = { type: "about:blank", title: "No", status, code, detail: `it is ${code}` };
  response.writeHead(status, { "Content-Type": "application/problem+json" }).end(JSON.stringify(body));
};

/** Streams pieces; `cut` breaks the connection after them, otherwise it stays open. */
export const stream = (pieces: string[], cut = false): Answer => (_, response) => {
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  for (const piece of pieces) response.write(piece);
  if (cut) setImmediate(() => response.destroy());
};

export const line = (seq: number, type: string, payload: object = {}, thread_id = "s") =>
  ({ seq, ts: seq, thread_id, turn: 1, step: 1, attempt: 1, type, payload });
export const sse = (value: object | null, id: number, event?: string) =>
  `id: ${id}\n${event ? `event: ${event}\n` : ""}data: ${JSON.stringify(value)}\n\n`;
export const delta = (seq: number, text: string) => line(seq, "cognition_out_delta", { text, chunk_index: seq });
export const asked = (seq: number, id: string) =>
  line(seq, "tool_confirmation_requested", {
    question_id: id, call_id: "c", tool: "shell", input: {}, reason: "asks", preview: { arguments: [], notes: [] },
  });

/** Waits until the state of something fulfils a condition. */
export function until(chat: { onStateChange(listener: () => void): () => void }, holds: () => boolean): Promise<void> {
  return new Promise((done) => {
    const check = () => {
      if (!holds()) return;
      undo();
      done();
    };
    const undo = chat.onStateChange(check);
    check();
  });
}
