import type { Command, MessageReceipt, SessionAccessor, SessionSource, StreamEvent, StreamItem } from "@tidegate/client";

/** Sessions whose events the tests give. */
export class Source implements SessionSource {
  readonly #sessions = new Map<string, FakeSession>();

  session(id: string): FakeSession {
    let session = this.#sessions.get(id);
    if (!session) this.#sessions.set(id, (session = new FakeSession()));
    return session;
  }
}

export class FakeSession implements SessionAccessor {
  readonly listeners = new Set<(item: StreamItem) => void>();
  readonly commands: Command[] = [];
  /** How often somebody began to listen. */
  starts = 0;

  onItem(listener: (item: StreamItem) => void): () => void {
    this.starts += 1;
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  send(command: Command): Promise<readonly MessageReceipt[]> {
    this.commands.push(command);
    return Promise.resolve([]);
  }

  emit(...events: StreamEvent[]): void {
    for (const event of events) {
      for (const listener of [...this.listeners]) listener({ kind: "event", event });
    }
  }
}
