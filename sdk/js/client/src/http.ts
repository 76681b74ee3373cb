import { ConnectionError, TidegateError } from "./errors.js";

/** What requests are made with. */
export interface Http {
  readonly baseUrl: string;
  readonly token: string | undefined;
  readonly fetch: typeof globalThis.fetch;
  /** Waits before a request is repeated; tests bring their own. */
  readonly wait: (ms: number) => Promise<void>;
}

/** Makes a request. An answer that is an error is thrown as a {@link TidegateError}, no answer as a {@link ConnectionError}. */
export async function request(http: Http, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (http.token !== undefined) headers.set("Authorization", `Bearer ${http.token}`);
  let response: Response;
  try {
    response = await http.fetch(http.baseUrl + path, { ...init, headers });
  } catch (cause) {
    // A page learns no more about a refused origin.
    const check = "check that the server runs there; a page of another origin must be one of its `origins`";
    throw new ConnectionError(`cannot reach ${server(http)}: ${check}`, { cause });
  }
  if (!response.ok) throw await problem(response);
  return response;
}

/** How errors name the server. */
export function server({ baseUrl }: Http): string {
  return baseUrl === "" ? "the server of this page" : baseUrl;
}

/** Reads the body of a response. */
async function textOf(http: Http, response: Response): Promise<string> {
  try {
    return await response.text();
  } catch (cause) {
    throw new ConnectionError(`the answer of ${server(http)} was cut off`, { cause });
  }
}

/** Makes a request whose answer is JSON, with a body of JSON. It is repeated a few times where no answer came: its body has an id, so that it is done once. */
export async function requestJson<T>(http: Http, method: string, path: string, body?: unknown): Promise<T> {
  const init: RequestInit = { method };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "Content-Type": "application/json" };
  }
  for (let attempt = 0; ; attempt += 1) {
    try {
      const response = await request(http, path, init);
      const text = await textOf(http, response);
      return (text === "" ? undefined : JSON.parse(text)) as T;
    } catch (error) {
      if (!isTransient(error) || attempt >= 4) throw error;
      await http.wait(backOff(attempt));
    }
  }
}

/** Whether the same request can succeed later: there was no answer, or none of the session's. */
export function isTransient(error: unknown): boolean {
  if (error instanceof TidegateError) return [429, 502, 503, 504].includes(error.status);
  return true;
}

/** Milliseconds before the next attempt: twice as long each time, at most 30 s, and half of it random. */
export function backOff(attempt: number): number {
  const most = Math.min(30_000, 250 * 2 ** attempt);
  return most / 2 + Math.random() * (most / 2);
}

async function problem(response: Response): Promise<TidegateError> {
  const { status, statusText } = response;
  const text = await response.text().catch(() => "");
  try {
    const { code, detail, title } = JSON.parse(text) as { code?: string; detail?: string; title?: string };
    return new TidegateError(status, code ?? `http_${status}`, detail ?? title ?? statusText);
  } catch {
    return new TidegateError(status, `http_${status}`, text.slice(0, 200) || statusText || `HTTP ${status}`);
  }
}
