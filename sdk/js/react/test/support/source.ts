import type { Command, ConnectionState, MessageReceipt, SessionAccessor, SessionSource, StreamEvent, StreamItem } from "@tidegate/client";

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
  readonly connections = new Set<(state: ConnectionState, error: Error | null) => void>();
  connection: ConnectionState = "idle";
  connectionError: Error | null = null;
  /** How often somebody began to listen. */
  starts = 0;

  onItem(listener: (item: StreamItem) => void): () => void {
    this.starts += 1;
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  onConnection(listener: (state: ConnectionState, error: Error | null) => void): () => void {
    this.connections.add(listener);
    return () => void this.connections.delete(listener);
  }

  /** Changes the connection. */
  become(connection: ConnectionState, error: Error | null = null): void {
    [this.connection, this.connectionError] = [connection, error];
    for (const listener of [...this.connections]) listener(connection, error);
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
