import type {
  ChatMessage,
  ChatMode,
  ChatSession,
  ChatSessionOptions,
  MessageLog,
  MessageLogOptions,
  MessageSteering,
  Outgoing,
  SteeringMode,
  StreamEvent,
  ToolConfirmationResponse,
  ToolConfirmations,
  ToolConfirmationsOptions,
  ToolConfirmationState,
} from "@tidegate/client";
import { expectTypeOf, test } from "vitest";
import { useChat, type UseChatResult, useMessages, useToolConfirmations } from "../../src/index.js";

// The compiler checks these: a test that compiles has passed.
test("hooks take the options of the classes", () => {
  expectTypeOf(useMessages).toExtend<(options?: MessageLogOptions) => {
    messages: readonly ChatMessage[];
    clear: () => void;
  }>();
  expectTypeOf(useToolConfirmations).toExtend<(options?: ToolConfirmationsOptions) => {
    pending: ToolConfirmationState | null;
    respond: (response: ToolConfirmationResponse) => void;
  }>();
  expectTypeOf<typeof useChat<ChatMode>>().toExtend<(options?: ChatSessionOptions) => UseChatResult>();
});

test("a chat has the state and the functions of its class", () => {
  expectTypeOf<ChatSession>().toExtend<{
    readonly messages: readonly ChatMessage[];
    readonly chatMode: ChatMode;
    readonly toolConfirmation: ToolConfirmationState | null;
    readonly lastSubmitted: string | null;
    readonly queued: readonly Outgoing[];
    readonly isExecuting: boolean;
    readonly mode: SteeringMode;
  }>();
  type Actions = {
    submit(text: string): void;
    steer(text: string): void;
    queue(text: string): void;
    interrupt(text: string): void;
    flush(): void;
    removeQueued(index: number): void;
    clearQueued(): void;
    setMode(mode: SteeringMode): void;
    respondToConfirmation(response: ToolConfirmationResponse): void;
    clearMessages(): void;
  };
  expectTypeOf<ChatSession>().toExtend<Actions>();
  expectTypeOf<UseChatResult>().toExtend<Actions>();
  expectTypeOf<ChatSession>().toExtend<{ onStateChange(listener: () => void): () => void; destroy(): void }>();
});

test("each primitive can be driven by a parent", () => {
  type Driven = { processEvent(event: StreamEvent): void; destroy(): void };
  expectTypeOf<MessageLog>().toExtend<Driven & { clear(): void }>();
  expectTypeOf<ToolConfirmations>().toExtend<Driven & { respond(response: ToolConfirmationResponse): void }>();
  expectTypeOf<MessageSteering>().toExtend<Driven>();
});
