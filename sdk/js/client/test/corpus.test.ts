import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ChatSession, type ChatSessionOptions } from "../src/chat-session.js";
import type { StreamEvent } from "../src/events.js";
import type { MessageTransform } from "../src/message-store.js";
import type { ConfirmationPolicy } from "../src/tool-confirmations.js";
import type { Answer, Attachment, ChatMessage, ChildThread, Receipt } from "../src/types.js";

type Json = { [key: string]: any };

const corpus = new URL("../../../../tests/corpus/chat/", import.meta.url);
const cases = readdirSync(corpus).filter((name) => name.endsWith(".jsonl") && !name.endsWith(".states.jsonl"));

function lines(name: string): Json[] {
  const text = readFileSync(new URL(name, corpus), "utf8");
  return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as Json);
}

/** The text of a message that is valid. */
function textOf(message: ChatMessage): string {
  const valid = message.blocks.filter((block) => block.kind === "text" && block.void === undefined);
  return valid.map((block) => block.text).join("");
}

const transforms: { [name: string]: MessageTransform } = {
  without_host: (message) => (message.author === "host" ? null : message),
  by_paragraph: (message) => {
    const parts = textOf(message).split("\n\n").filter((part) => part !== "");
    if (message.author !== "assistant" || parts.length < 2) return message;
    return parts.map((text, at) => {
      const isLast = at === parts.length - 1;
      const { calls, notes, ...rest } = message;
      const kept = at === 0 ? message.blocks.filter((block) => block.kind === "reasoning") : [];
      const blocks = [...kept, { kind: "text" as const, text, complete: message.complete || !isLast }];
      return { ...rest, blocks, ...(isLast && calls ? { calls } : {}), ...(isLast && notes ? { notes } : {}) };
    });
  },
};

function policy(answers: { [tool: string]: Answer | "panic" }): ConfirmationPolicy {
  return (request) => {
    const answer = answers[request.name];
    if (answer === undefined) return { action: "prompt" };
    if (answer === "panic") throw new Error("the policy of the case");
    const { decision, ...rest } = answer;
    return { action: decision, ...rest } as ReturnType<ConfirmationPolicy>;
  };
}

function open(options: Json): ChatSession {
  const chosen: Json = {
    renderMode: options["render_mode"],
    mode: options["mode"],
    flushMode: options["flush_mode"],
    autoFlush: options["auto_flush"],
    sessionQueue: options["session_queue"],
    initialMessages: options["initial_messages"],
    transform: options["transform"] && transforms[options["transform"]],
    confirmationPolicy: options["policy"] && policy(options["policy"]),
  };
  for (const key of Object.keys(chosen)) if (chosen[key] === undefined) delete chosen[key];
  return new ChatSession(null, chosen as ChatSessionOptions);
}

/** A state in the shape of the corpus. */
function state(chat: ChatSession): Json {
  const now = chat.state;
  const { queued, sent, waiting, isExecuting: executing, mode } = now;
  const submitted = now.lastSubmittedId === null ? null : { id: now.lastSubmittedId, text: now.lastSubmitted };
  return {
    messages: now.messages,
    mode: now.chatMode,
    questions: now.questions,
    steering: { executing, mode, queued, sent, ...(waiting.length ? { waiting } : {}) },
    streaming: now.streaming,
    last_submitted: submitted,
    error: now.error,
    ...(now.limit ? { limit: now.limit } : {}),
    ...(now.isInterrupted ? { interrupted: true } : {}),
    ...(now.plan.length ? { plan: now.plan } : {}),
    attachments: now.attachments,
    children: now.children,
  };
}

function act(chat: ChatSession, line: Json): void {
  const text = line["text"] as string;
  switch (line["do"]) {
    case "submit": return void chat.submit(text);
    case "steer": return void chat.steer(text);
    case "queue": return void chat.queue(text);
    case "interrupt": return void chat.interrupt(text);
    case "flush": return chat.flush();
    case "edit": return chat.edit(line["id"], text);
    case "remove": return chat.removeQueued(line["id"] as string);
    case "take_back": return void chat.takeBack(line["id"]);
    case "clear_queue": return chat.clearQueued();
    case "clear": return chat.clearMessages();
    case "set_mode": return chat.setMode(line["mode"]);
    case "acknowledge": return chat.acknowledge(line["id"], line["as"] as Receipt);
    case "respond": return chat.answer(line["question"], line["answer"] as Answer);
    case "answer_failed": return chat.answerFailed(line["question"], line["why"]);
    case "attach": {
      const { name, media_type, source } = line;
      return chat.attach({ name, media_type, source } as Attachment);
    }
    case "detach": return chat.detach(line["index"]);
    default: throw new Error(`no action is called ${line["do"]}`);
  }
}

/** The keys of a state that differ from the state before; of messages those that do, as the corpus has them. */
function difference(before: Json, after: Json): Json {
  const found: Json = {};
  for (const key of Object.keys(after)) {
    const [old, now] = [JSON.stringify(before[key]), JSON.stringify(after[key])];
    if (old === now) continue;
    found[key] = key === "messages" ? messages(before["messages"], after["messages"]) : after[key];
  }
  for (const key of Object.keys(before)) if (!(key in after)) found[key] = null;
  return found;
}

function messages(before: ChatMessage[], after: ChatMessage[]): Json {
  const known = new Set(before.map((message) => JSON.stringify(message)));
  const ids = (all: ChatMessage[]) => all.map((message) => message.id);
  const changed = after.filter((message) => !known.has(JSON.stringify(message)));
  const same = JSON.stringify(ids(before)) === JSON.stringify(ids(after));
  return same ? { changed } : { changed, ids: ids(after) };
}

/** Sorted keys, so that the order in which a change has set them means nothing. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  return Object.fromEntries(entries.sort(([one], [two]) => (one < two ? -1 : 1)).map(([key, one]) => [key, sorted(one)]));
}

test.each(cases)("%s gives its states, event by event", (name) => {
  const session = lines(name);
  const options = (session[0]?.["options"] ?? {}) as Json;
  let chat = open(options);
  let notified = 0;
  chat.onStateChange(() => (notified += 1));
  let before = sorted(state(chat)) as Json;
  const found: Json[] = [{ line: 0, state: before }];
  session.forEach((line, index) => {
    if ("case" in line) return;
    notified = 0;
    let error: string | undefined;
    const identities = new Map(chat.messages.map((message) => [message.id, message]));
    if ("reconnect" in line) {
      const saved = JSON.parse(JSON.stringify(chat.save()));
      chat.destroy();
      chat = open(options);
      chat.onStateChange(() => (notified += 1));
      chat.restore(saved);
    } else if ("do" in line) {
      try {
        act(chat, line);
      } catch (refused) {
        error = (refused as Error).message;
      }
    } else if ("child" in line) {
      chat.processChildEvent(line["child"] as ChildThread, line["record"] as StreamEvent);
    } else if ("type" in line) {
      chat.processEvent(line as unknown as StreamEvent);
    }
    const after = sorted(state(chat)) as Json;
    const changes = difference(before, after);
    const commands = chat.takeCommands();
    const differs = Object.keys(changes).length > 0;
    if (!("reconnect" in line)) {
      expect(notified, `${name}:${index + 1} notifies once`).toBeLessThanOrEqual(1);
      if (differs) expect(notified, `${name}:${index + 1} notifies`).toBe(1);
      for (const message of chat.messages) {
        const old = identities.get(message.id);
        if (old && JSON.stringify(sorted(old)) === JSON.stringify(sorted(message)) && !options["transform"]) {
          expect(message === old, `${name}:${index + 1} ${message.id} keeps its identity`).toBe(true);
        }
      }
    }
    if (differs || commands.length > 0 || error !== undefined) {
      const one: Json = { line: index + 1 };
      if (commands.length > 0) one["commands"] = commands;
      if (error !== undefined) one["error"] = error;
      if (differs) one["state"] = changes;
      found.push(one);
    }
    before = after;
  });
  found.push({ line: "end", state: before });
  const wanted = lines(name.replace(/\.jsonl$/, ".states.jsonl"));
  found.forEach((one, index) => expect(sorted(one)).toEqual(sorted(wanted[index])));
  expect(found.length).toBe(wanted.length);
  chat.destroy();
});
