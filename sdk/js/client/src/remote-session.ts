import { ChatSession } from "./chat-session.js";
import { ConnectionError } from "./errors.js";
import { isEvent, type StreamEvent, type StreamItem } from "./events.js";
import { type Http, isTransient, requestJson } from "./http.js";
import { attempt, Listeners } from "./listeners.js";
import type { Receipts } from "./schema/server.js";
import { type Connection, type ConnectionState, DISCONNECTED, type MessageReceipt, type SessionAccessor } from "./session.js";
import { SessionStream } from "./session-stream.js";
import { answerOf, type ToolConfirmationRequest, type ToolConfirmationResponse } from "./tool-confirmations.js";
import type { Command, Unsubscribe } from "./types.js";

/** Gives a command without messages an id, so that it is carried out once where it is sent again. */
function named(command: Command): Command {
  const isUnnamed = command.command === "flush" || command.command === "cancel" || command.command === "continue";
  return isUnnamed ? { id: crypto.randomUUID(), ...command } : command;
}

const isLost = (state: ConnectionState) => state === "waiting" || state === "connecting";

/** A session on the server: one stream of its events for all listeners, and its commands in order. */
export class Session implements SessionAccessor {
  readonly id: string;
  readonly #http: Http;
  readonly #path: string;
  readonly #errors = new Listeners<[error: unknown]>((error) => console.error(error));
  readonly #items = new Listeners<[item: StreamItem]>((error) => this.#report(error));
  readonly #connections = new Listeners<[state: ConnectionState, error: Error | null]>((error) => this.#report(error));
  #connection: Connection = DISCONNECTED;
  #stream: SessionStream | undefined;
  #sending: Promise<unknown> = Promise.resolve();

  constructor(http: Http, id: string) {
    this.id = id;
    this.#http = http;
    this.#path = `/v1/sessions/${encodeURIComponent(id)}`;
  }

  get connection(): ConnectionState {
    return this.#connection.state;
  }

  /** Why it is not connected, and what to do; `null` while it is, and before the first attempt has failed. */
  get connectionError(): Error | null {
    return this.#connection.error;
  }

  /** Takes what happens in the session, from its start: a listener that comes later gets a snapshot first. The stream runs while there is one. */
  onItem(listener: (item: StreamItem) => void): Unsubscribe {
    const before = this.#stream?.snapshot();
    const undo = this.#items.add(listener);
    if (before) attempt(() => listener(before), (error) => this.#report(error));
    if (!this.#stream) this.#start();
    return () => {
      undo();
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

  /** Takes each error that ends a connection; events that cannot be read, and what listeners throw: without a listener, these are written to the console. */
  onError(listener: (error: unknown) => void): Unsubscribe {
    return this.#errors.add(listener);
  }

  /** Takes each change of the connection, with what {@link connectionError} is then. */
  onConnection(listener: (state: ConnectionState, error: Error | null) => void): Unsubscribe {
    return this.#connections.add(listener);
  }

  /**
   * Has the session carry a command out, after those before. Where the answer is lost, the same command is sent again, which changes nothing if it
   * was carried out. No answer within `timeoutMs` of the client counts as a connection that is lost. While the server cannot be reached, it waits
   * for the next connection, if there is a listener for items; otherwise it is rejected with the error of the last of a few attempts.
   */
  async send(command: Command): Promise<readonly MessageReceipt[]> {
    const body = named(command);
    const send = () => this.#deliver(body);
    const sent = this.#sending.then(send, send);
    this.#sending = sent.catch(() => undefined);
    return (await sent).receipts;
  }

  async #deliver(body: Command): Promise<Receipts> {
    for (let hasCut = false; ; ) {
      try {
        return await requestJson<Receipts>(this.#http, "POST", `${this.#path}/commands`, body);
      } catch (error) {
        if (!isTransient(error)) throw error;
        // A network that is cut does not end the stream. It is ended once: there are networks where requests fail and streams do not.
        const cuts: boolean = error instanceof ConnectionError && this.connection === "open" && !hasCut;
        if (cuts) this.#stream?.reconnect();
        else if (!isLost(this.connection)) throw error;
        hasCut ||= cuts;
        if (!(await this.#opens())) throw error;
      }
    }
  }

  /** Waits for the next connection; `false`: there will be none. */
  #opens(): Promise<boolean> {
    return new Promise((done) => {
      const undo = this.onConnection((state) => {
        if (isLost(state)) return;
        undo();
        done(state === "open");
      });
    });
  }

  async #answer(request: ToolConfirmationRequest, response: ToolConfirmationResponse): Promise<void> {
    const { id: question, call, child } = request;
    const command = { command: "answer", question, call, answer: answerOf(response) } as const;
    await this.send(child ? { ...command, child } : command);
  }

  #start(): void {
    this.#stream = new SessionStream(this.#http, this.#path, {
      item: (item) => this.#items.call(item),
      connection: (state, error) => this.#become({ state, error }),
      error: (error) => this.#report(error),
    });
    void this.#stream.run();
  }

  #close(): void {
    this.#stream?.stop();
    this.#stream = undefined;
    this.#become(DISCONNECTED);
  }

  #report(error: unknown): void {
    if (this.#errors.size === 0) console.error(error);
    this.#errors.call(error);
  }

  #become(connection: Connection): void {
    const { state, error } = this.#connection;
    if (connection.state === state && connection.error === error) return;
    this.#connection = connection;
    if (connection.error && connection.error !== error) this.#errors.call(connection.error);
    this.#connections.call(connection.state, connection.error);
  }
}
