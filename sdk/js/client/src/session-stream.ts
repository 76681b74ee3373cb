import { ChatSession } from "./chat-session.js";
import { ConnectionError, EventError, TidegateError } from "./errors.js";
import type { StreamEvent, StreamItem } from "./events.js";
import { backOff, type Http, isTransient, request, server } from "./http.js";
import type { ConnectionState } from "./session.js";
import { EventReader, type ServerSentEvent } from "./sse.js";
import type { ChildThread, SavedChat } from "./types.js";

/** Receives the items of a stream. */
export interface StreamHandler {
  item(item: StreamItem): void;
  connection(state: ConnectionState, error: Error | null): void;
  /** Takes events that cannot be read. */
  error(error: unknown): void;
}

interface Snapshot {
  readonly omitted: number;
  readonly chat: SavedChat;
}

interface ChildData {
  readonly child: ChildThread;
  readonly line?: StreamEvent;
  readonly snapshot?: Snapshot;
}

/** How long a connection can be silent. The server sends a comment every 15 seconds by default, and a network that is cut sends no end. */
const SILENCE_MS = 60_000;

/** Why the server ends a stream. */
const ENDS: Readonly<Record<string, string>> = {
  deleted: "the session was deleted",
  closed: "the user has no access to the session any more",
};

/** The events of a session, from the first on, over one connection after the other. Once it is stopped, its handler is not called any more. */
export class SessionStream {
  readonly #http: Http;
  readonly #path: string;
  readonly #handler: StreamHandler;
  /** The state that a later listener starts from. */
  readonly #chat: ChatSession;
  /** The next event of each child: after a reconnect their events come again. */
  readonly #children = new Map<string, number>();
  /** Ends the current connection. */
  #connection = new AbortController();
  #body: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #isStopped = false;
  #lastId: string | undefined;
  #nextSeq = 0;

  constructor(http: Http, path: string, handler: StreamHandler) {
    this.#http = http;
    this.#path = path;
    this.#handler = handler;
    this.#chat = new ChatSession(null, { onError: (error) => handler.error(error) });
  }

  /** What has happened until now, or `undefined` where nothing has. */
  snapshot(): StreamItem | undefined {
    return this.#nextSeq > 0 ? { kind: "snapshot", omitted: this.#nextSeq, chat: this.#chat.save() } : undefined;
  }

  stop(): void {
    this.#isStopped = true;
    this.reconnect();
    this.#chat.destroy();
  }

  /** Ends the current connection, as if it had been silent for too long. The next one follows, unless the stream is stopped. */
  reconnect(): void {
    this.#connection.abort();
    // A `fetch` among the options can ignore the signal.
    void this.#body?.cancel().catch(() => undefined);
  }

  /** Connects again and again, until it is stopped or the server ends the stream. */
  async run(): Promise<void> {
    let why: Error | null = null;
    for (let attempt = 0; !this.#isStopped; attempt += 1) {
      this.#handler.connection("connecting", why);
      if (this.#isStopped) return;
      const [reader, before] = [new EventReader(), this.#lastId];
      try {
        const end = await this.#connect(reader);
        if (this.#isStopped) return;
        if (end) return this.#handler.connection("ended", end);
        why = new ConnectionError(`${server(this.#http)} has closed the connection`);
      } catch (error) {
        if (this.#isStopped) return;
        why = error instanceof Error ? error : new ConnectionError(String(error));
        if (!isTransient(error)) return this.#handler.connection("ended", why);
      }
      if (this.#isStopped) return;
      if (this.#lastId !== before) attempt = 0;
      this.#handler.connection("waiting", why);
      await this.#http.wait(reader.retry ?? backOff(attempt));
    }
  }

  /** Reads one connection to its end. Returns why the server has ended the stream, if it has. */
  async #connect(reader: EventReader): Promise<Error | undefined> {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (this.#lastId !== undefined) headers["Last-Event-ID"] = this.#lastId;
    const { signal } = (this.#connection = new AbortController());
    const late = setTimeout(() => this.reconnect(), SILENCE_MS);
    const response = await request(this.#http, `${this.#path}/events`, { headers, signal }).finally(() => clearTimeout(late));
    if (!response.body) throw new TidegateError(response.status, "no_stream", "the answer has no body");
    const body = (this.#body = response.body.getReader());
    try {
      return await this.#readAll(body, reader);
    } finally {
      // Where the server has ended the stream, or a listener has stopped it, the body is not at its end.
      void body.cancel().catch(() => undefined);
    }
  }

  async #readAll(body: ReadableStreamDefaultReader<Uint8Array>, reader: EventReader): Promise<Error | undefined> {
    if (this.#isStopped) return undefined;
    this.#handler.connection("open", null);
    const decoder = new TextDecoder();
    for (;;) {
      const value = await this.#read(body);
      if (!value) return undefined;
      for (const event of reader.push(decoder.decode(value, { stream: true }))) {
        // A listener can have stopped it.
        if (this.#isStopped) return undefined;
        const end = this.#dispatch(event);
        if (end) return end;
      }
    }
  }

  /** Reads what comes next; `undefined`: nothing does any more. */
  async #read(body: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array | undefined> {
    const cut = (cause?: unknown) => new ConnectionError(`the connection to ${server(this.#http)} was cut off`, { cause });
    const timer = setTimeout(() => this.reconnect(), SILENCE_MS);
    try {
      const { value } = await body.read();
      if (this.#connection.signal.aborted) throw cut();
      return value;
    } catch (cause) {
      throw cause instanceof ConnectionError ? cause : cut(cause);
    } finally {
      clearTimeout(timer);
    }
  }

  #dispatch({ id, event, data }: ServerSentEvent): Error | undefined {
    if (id !== undefined) this.#lastId = id;
    try {
      return this.#take(event, JSON.parse(data) as never);
    } catch (error) {
      if (!this.#isStopped) this.#handler.error(new EventError(event, String(error)));
      return undefined;
    }
  }

  #take(event: string, content: never): Error | undefined {
    if (event === "message") this.#own(content);
    else if (event === "child") this.#child(content);
    else if (event === "snapshot") this.#snapshot(content);
    else if (event === "end") return this.#end(content);
    return undefined;
  }

  #end({ reason }: { readonly reason: string }): Error {
    this.#handler.item({ kind: "end", reason });
    return new ConnectionError(ENDS[reason] ?? `the server has ended the stream: ${reason}`);
  }

  #own(event: StreamEvent): void {
    if (event.seq < this.#nextSeq) return;
    this.#chat.processEvent(event);
    this.#nextSeq = event.seq + 1;
    this.#handler.item({ kind: "event", event });
  }

  #child({ child, line, snapshot }: ChildData): void {
    if (snapshot) {
      const { omitted, chat } = snapshot;
      this.#children.set(child.id, chat.next_seq);
      this.#chat.restoreChild(child, chat);
      this.#handler.item({ kind: "child_snapshot", child, omitted, chat });
    }
    // A listener can have stopped it.
    if (this.#isStopped || !line || line.seq < (this.#children.get(line.thread_id) ?? 0)) return;
    this.#children.set(line.thread_id, line.seq + 1);
    this.#chat.processChildEvent(child, line);
    this.#handler.item({ kind: "child", child, event: line });
  }

  #snapshot({ omitted, chat }: Snapshot): void {
    // In another run of the server, numbers of children begin again.
    this.#children.clear();
    this.#chat.restore(chat);
    this.#nextSeq = chat.next_seq;
    this.#handler.item({ kind: "snapshot", omitted, chat });
  }
}
