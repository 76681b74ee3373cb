import { ChatSession } from "./chat-session.js";
import { TidegateError } from "./errors.js";
import { isEvent, type StreamEvent, type StreamItem } from "./events.js";
import { backOff, type Http, isTransient, request, requestJson } from "./http.js";
import type { Receipts } from "./schema/server.js";
import type { MessageReceipt, SessionAccessor } from "./session.js";
import { EventReader, type ServerSentEvent } from "./sse.js";
import { answerOf, type ToolConfirmationRequest, type ToolConfirmationResponse } from "./tool-confirmations.js";
import type { ChildThread, Command, SavedChat, Unsubscribe } from "./types.js";

/** Whether the stream of a session is connected; `ended`: the server has ended it, or refuses it. */
export type ConnectionState = "idle" | "connecting" | "open" | "waiting" | "ended";

interface Snapshot {
  readonly omitted: number;
  readonly chat: SavedChat;
}

interface ChildData {
  readonly child: ChildThread;
  readonly line?: StreamEvent;
  readonly snapshot?: Snapshot;
}

/** Gives a command without messages an id, so that it is carried out once where it is sent again. */
function named(command: Command): Command {
  const isUnnamed = command.command === "flush" || command.command === "cancel" || command.command === "continue";
  return isUnnamed ? { id: crypto.randomUUID(), ...command } : command;
}

/** A session on the server: one stream of its events for all listeners, and its commands in order. */
export class Session implements SessionAccessor {
  readonly id: string;
  readonly #http: Http;
  readonly #path: string;
  readonly #items = new Set<(item: StreamItem) => void>();
  readonly #errors = new Set<(error: unknown) => void>();
  readonly #states = new Set<(state: ConnectionState) => void>();
  /** The next event of each child: after a reconnect their events come again. */
  readonly #children = new Map<string, number>();
  #state: ConnectionState = "idle";
  #stop: AbortController | undefined;
  #lastId: string | undefined;
  #nextSeq = 0;
  /** What a listener that comes later gets in the place of the events before. */
  #learnt: ChatSession | undefined;
  #sending: Promise<unknown> = Promise.resolve();

  constructor(http: Http, id: string) {
    this.id = id;
    this.#http = http;
    this.#path = `/v1/sessions/${encodeURIComponent(id)}`;
  }

  get connection(): ConnectionState {
    return this.#state;
  }

  /** Takes what happens in the session, from its start: a listener that comes later gets a snapshot first. The stream runs while there is one. */
  onItem(listener: (item: StreamItem) => void): Unsubscribe {
    this.#items.add(listener);
    if (this.#learnt && this.#nextSeq > 0) listener({ kind: "snapshot", omitted: this.#nextSeq, chat: this.#learnt.save() });
    if (!this.#stop) void this.#run();
    return () => {
      this.#items.delete(listener);
      if (this.#items.size === 0) this.#close();
    };
  }

  /** Takes the events of the session's own thread. Events before a snapshot are left out. */
  onEvent(listener: (event: StreamEvent) => void): Unsubscribe {
    return this.onItem((item) => {
      if (item.kind === "event") listener(item.event);
    });
  }

  /** Takes the questions about tool calls from now on, each with the way to answer it. */
  onToolConfirmation(
    listener: (request: ToolConfirmationRequest, respond: (response: ToolConfirmationResponse) => Promise<void>) => void,
  ): Unsubscribe {
    const seen = new Set<string>();
    const chat = new ChatSession();
    const undo = this.onItem((item) => {
      chat.processItem(item);
      const asked = item.kind === "event" && isEvent(item.event, "tool_confirmation_requested");
      for (const { request } of chat.state.toolConfirmations) {
        const isAgain = asked && item.event.payload.question_id === request.id;
        if (seen.has(request.id) && !isAgain) continue;
        seen.add(request.id);
        listener(request, (response) => this.#answer(request, response));
      }
    });
    return () => {
      undo();
      chat.destroy();
    };
  }

  /** Takes each error that ends a connection, and what listeners throw. */
  onError(listener: (error: unknown) => void): Unsubscribe {
    this.#errors.add(listener);
    return () => void this.#errors.delete(listener);
  }

  onConnection(listener: (state: ConnectionState) => void): Unsubscribe {
    this.#states.add(listener);
    return () => void this.#states.delete(listener);
  }

  /**
   * Has the session carry a command out, after those before. Where the answer is lost, the same command is sent again, which changes nothing if it
   * was carried out.
   */
  async send(command: Command): Promise<readonly MessageReceipt[]> {
    const body = named(command);
    const send = () => requestJson<Receipts>(this.#http, "POST", `${this.#path}/commands`, body);
    const sent = this.#sending.then(send, send);
    this.#sending = sent.catch(() => undefined);
    return (await sent).receipts;
  }

  async #answer(request: ToolConfirmationRequest, response: ToolConfirmationResponse): Promise<void> {
    const { id: question, call, child } = request;
    const command = { command: "answer", question, call, answer: answerOf(response) } as const;
    await this.send(child ? { ...command, child } : command);
  }

  #close(): void {
    this.#stop?.abort();
    this.#stop = undefined;
    this.#learnt?.destroy();
    this.#learnt = undefined;
    this.#lastId = undefined;
    this.#nextSeq = 0;
    this.#children.clear();
    this.#become("idle");
  }

  /** Connects again and again, until nobody listens or the server ends the stream. */
  async #run(): Promise<void> {
    const stop = (this.#stop = new AbortController());
    this.#learnt = new ChatSession();
    for (let attempt = 0; !stop.signal.aborted; attempt += 1) {
      this.#become("connecting");
      const reader = new EventReader();
      try {
        const before = this.#lastId;
        const isEnd = await this.#connect(stop.signal, reader);
        if (isEnd) break;
        if (this.#lastId !== before) attempt = 0;
      } catch (error) {
        if (stop.signal.aborted) return;
        for (const listener of this.#errors) listener(error);
        if (!isTransient(error)) break;
      }
      if (stop.signal.aborted) return;
      this.#become("waiting");
      await this.#http.wait(reader.retry ?? backOff(attempt));
    }
    if (!stop.signal.aborted) this.#become("ended");
  }

  /** Reads one connection to its end. Returns whether the server has ended the stream. */
  async #connect(signal: AbortSignal, reader: EventReader): Promise<boolean> {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (this.#lastId !== undefined) headers["Last-Event-ID"] = this.#lastId;
    const response = await request(this.#http, `${this.#path}/events`, { headers, signal });
    if (!response.body) throw new TidegateError(response.status, "no_stream", "the answer has no body");
    this.#become("open");
    const decoder = new TextDecoder();
    const body = response.body.getReader();
    for (;;) {
      const { done, value } = await body.read();
      if (done || signal.aborted) return false;
      for (const event of reader.push(decoder.decode(value, { stream: true }))) {
        if (this.#dispatch(event)) return true;
      }
    }
  }

  #dispatch({ id, event, data }: ServerSentEvent): boolean {
    const content = JSON.parse(data) as never;
    if (event === "message") this.#own(content);
    else if (event === "child") this.#child(content);
    else if (event === "snapshot") this.#snapshot(content);
    else if (event === "end") this.#emit({ kind: "end", reason: (content as { reason: string }).reason });
    if (id !== undefined) this.#lastId = id;
    return event === "end";
  }

  #own(event: StreamEvent): void {
    if (event.seq < this.#nextSeq) return;
    this.#learnt?.processEvent(event);
    this.#nextSeq = event.seq + 1;
    this.#emit({ kind: "event", event });
  }

  #child({ child, line, snapshot }: ChildData): void {
    if (snapshot) {
      const { omitted, chat } = snapshot;
      this.#children.set(child.id, chat.next_seq);
      this.#learnt?.restoreChild(child, chat);
      this.#emit({ kind: "child_snapshot", child, omitted, chat });
    }
    if (!line || line.seq < (this.#children.get(line.thread_id) ?? 0)) return;
    this.#children.set(line.thread_id, line.seq + 1);
    this.#learnt?.processChildEvent(child, line);
    this.#emit({ kind: "child", child, event: line });
  }

  #snapshot({ omitted, chat }: Snapshot): void {
    // In another run of the server, numbers of children begin again.
    this.#children.clear();
    this.#learnt?.restore(chat);
    this.#nextSeq = chat.next_seq;
    this.#emit({ kind: "snapshot", omitted, chat });
  }

  #emit(item: StreamItem): void {
    for (const listener of [...this.#items]) {
      try {
        listener(item);
      } catch (error) {
        // The other listeners have the item, too, and the connection stays open.
        if (this.#errors.size === 0) console.error(error);
        for (const failed of this.#errors) failed(error);
      }
    }
  }

  #become(state: ConnectionState): void {
    if (this.#state === state) return;
    this.#state = state;
    for (const listener of [...this.#states]) listener(state);
  }
}
