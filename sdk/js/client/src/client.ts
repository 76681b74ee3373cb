import { type Http, requestJson, requestText } from "./http.js";
import { Session } from "./remote-session.js";
import type { NewFork, NewSession, SessionList, Summary } from "./schema/server.js";
import type { SessionSource } from "./session.js";

/** The settings of a {@link TidegateClient}. */
export interface ClientOptions {
  /** Where the server is, such as `http://localhost:8080`. Default: where the page came from. */
  readonly baseUrl?: string;
  readonly token?: string;
  /** Default: the `fetch` of the platform. */
  readonly fetch?: typeof globalThis.fetch;
  /**
   * How long the answer to a command or another request can take; then it is rejected with a {@link TimeoutError}. `Infinity`: without a limit. Default:
   * 60,000. Streams of events have a limit of their own.
   */
  readonly timeoutMs?: number;
  /** Waits before a request is repeated. Default: a timer. */
  readonly wait?: (ms: number) => Promise<void>;
}

/** What the server tells about a session. */
export type SessionSummary = Summary;

/** What a new session is to be. Its `id` names the request, so that it is done once, and not the session; the default is a random one. */
export type CreateSession = NewSession;

/** A client of `tidegate serve`. */
export class TidegateClient implements SessionSource {
  readonly sessions: Sessions;
  readonly #http: Http;
  readonly #sessions = new Map<string, Session>();

  constructor(options: ClientOptions = {}) {
    const { token, fetch = (...request) => globalThis.fetch(...request), timeoutMs = 60_000 } = options;
    const wait = options.wait ?? ((ms: number) => new Promise<void>((done) => void setTimeout(done, ms)));
    this.#http = { baseUrl: (options.baseUrl ?? "").replace(/\/+$/, ""), token, fetch, timeoutMs, wait };
    this.sessions = new Sessions(this.#http);
  }

  /** Returns what gives the events of a session and takes its commands: one for each session, with one stream. */
  session(id: string): Session {
    let session = this.#sessions.get(id);
    if (!session) this.#sessions.set(id, (session = new Session(this.#http, id)));
    return session;
  }
}

/** The sessions of the user on the server. */
export class Sessions {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Creates a session, whose id is in the result. */
  async create(session: CreateSession = {}): Promise<SessionSummary> {
    return requestJson(this.#http, "POST", "/v1/sessions", { id: crypto.randomUUID(), ...session });
  }

  /** Returns the user's sessions and those that others share with the user, the latest first. */
  async list(): Promise<readonly SessionSummary[]> {
    const { sessions } = await requestJson<SessionList>(this.#http, "GET", "/v1/sessions");
    return sessions;
  }

  /** Returns one session; unlike those of a list, with the number of its last finished turn. */
  async get(id: string): Promise<SessionSummary> {
    return requestJson(this.#http, "GET", sessionPath(id));
  }

  /** Makes a session that begins with the first turns of another one, all of them without `turn`. */
  async fork(id: string, options: NewFork = {}): Promise<SessionSummary> {
    return requestJson(this.#http, "POST", sessionPath(id, "/fork"), { id: crypto.randomUUID(), ...options });
  }

  /** Returns what was shown of a session as a file. */
  async export(id: string, format: "md" | "html" | "jsonl" = "md"): Promise<string> {
    return requestText(this.#http, sessionPath(id, `/export?format=${format}`));
  }

  /** Deletes a session with its transcript and what plugins keep in it, which only its owner can do. */
  async delete(id: string): Promise<void> {
    await requestJson(this.#http, "DELETE", sessionPath(id));
  }

  /** Lets another user use a session. */
  async share(id: string, user: string): Promise<void> {
    await requestJson(this.#http, "PUT", sessionPath(id, `/users/${encodeURIComponent(user)}`));
  }

  /** Ends the sharing, and the streams of that user. A user can end the own one. */
  async unshare(id: string, user: string): Promise<void> {
    await requestJson(this.#http, "DELETE", sessionPath(id, `/users/${encodeURIComponent(user)}`));
  }
}

/** The path of a session, or of something in it. */
export function sessionPath(id: string, rest = ""): string {
  return `/v1/sessions/${encodeURIComponent(id)}${rest}`;
}
