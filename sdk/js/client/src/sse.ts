/** One server-sent event. */
export interface ServerSentEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

/** Reads server-sent events from pieces of text, cut anywhere. What a broken connection leaves unfinished is no event. */
export class EventReader {
  /** Milliseconds that the server asks to wait before the next connection. */
  retry: number | undefined;
  #rest = "";
  #data: string[] = [];
  #event = "";
  #id: string | undefined;

  /** Takes the next piece and returns the events that it completes. */
  push(text: string): ServerSentEvent[] {
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    const events: ServerSentEvent[] = [];
    for (const line of lines) {
      if (line !== "") this.#field(line);
      else if (this.#data.length > 0) events.push(this.#finish());
      else this.#event = "";
    }
    return events;
  }

  #field(line: string): void {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#event = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    else if (name === "retry" && /^\d+$/.test(value)) this.retry = Number(value);
  }

  #finish(): ServerSentEvent {
    const event = { id: this.#id, event: this.#event || "message", data: this.#data.join("\n") };
    this.#data = [];
    this.#event = "";
    return event;
  }
}
