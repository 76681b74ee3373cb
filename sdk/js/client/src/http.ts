import { ConnectionError, TidegateError, TimeoutError } from "./errors.js";

/** What requests are made with. */
export interface Http {
  readonly baseUrl: string;
  readonly token: string | undefined;
  readonly fetch: typeof globalThis.fetch;
  /** How long an answer can take, to the end of its body; `Infinity`: without a limit. */
  readonly timeoutMs: number;
  /** Waits before a request is repeated; tests bring their own. */
  readonly wait: (ms: number) => Promise<void>;
}

/** A longer timer fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

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
    throw new ConnectionError(`cannot reach ${server(http)}: ${check}`, { cause }, !isUnreachable(cause));
  }
  if (!response.ok) throw await problem(response);
  return response;
}

/** How errors name the server. */
export function server({ baseUrl }: Http): string {
  return baseUrl === "" ? "the server of this page" : baseUrl;
}

/** Whether there was no connection, as far as the platform reports it: Node does, and browsers do not. */
function isUnreachable(error: unknown): boolean {
  const { code } = ((error as { cause?: unknown } | undefined)?.cause ?? {}) as { code?: unknown };
  return typeof code === "string" && ["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND", "EAI_AGAIN"].includes(code);
}

/** Makes a request, and returns the body of its answer. One that does not come in time is a {@link TimeoutError}. */
export async function requestText(http: Http, path: string, init: RequestInit = {}): Promise<string> {
  const { timeoutMs } = http;
  const connection = new AbortController();
  const answer = request(http, path, { ...init, signal: connection.signal }).then((response) => textOf(http, response));
  if (timeoutMs === Infinity) return answer;
  let timer: ReturnType<typeof setTimeout> | undefined;
  // A `fetch` among the options can ignore the signal.
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const why = "it may have carried the request out, and does so once where the same one is sent again";
      reject(new TimeoutError(`${server(http)} has not answered within ${timeoutMs / 1000} s: ${why}`));
      connection.abort();
    }, Math.min(timeoutMs, MAX_TIMER_MS));
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}

/** Reads the body of a response. */
async function textOf(http: Http, response: Response): Promise<string> {
  try {
    return await response.text();
  } catch (cause) {
    throw new ConnectionError(`the answer of ${server(http)} was cut off`, { cause });
  }
}

/**
 * Makes a request whose answer is JSON, with a body of JSON. It is repeated a few times where no answer came: its body has an id, so that it is done
 * once. One that has used up its time is not.
 */
export async function requestJson<T>(http: Http, method: string, path: string, body?: unknown): Promise<T> {
  const init: RequestInit = { method };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "Content-Type": "application/json" };
  }
  for (let attempt = 0; ; attempt += 1) {
    try {
      const text = await requestText(http, path, init);
      return (text === "" ? undefined : JSON.parse(text)) as T;
    } catch (error) {
      if (!isTransient(error) || error instanceof TimeoutError || attempt >= 4) throw error;
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
