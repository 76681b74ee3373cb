import { module as embedded } from "./generated/module.js";
import type { Output } from "./change.js";
import type { ChildThread } from "./types.js";
import { isEvent, type StreamEvent } from "./events.js";

interface Exports {
  readonly memory: WebAssembly.Memory;
  input(len: number): number;
  output(): number;
  create(len: number): number;
  destroy(number: number): void;
  start(number: number): number;
  event(number: number, len: number): number;
  child(number: number, len: number): number;
  act(number: number, len: number): number;
  delta(
    number: number,
    reasoning: number,
    seq: number,
    ts: number,
    turn: number,
    step: number,
    attempt: number,
    len: number,
  ): number;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
let loaded: Exports | undefined;
let bytes = new Uint8Array(0);

/** Returns the module of the primitives, which starts with the first of them: once, and without waiting. */
function engine(): Exports {
  if (!loaded) {
    const binary = new Uint8Array(embedded.length / 2);
    for (let at = 0; at < binary.length; at += 1) binary[at] = (digit(at * 2) << 4) | digit(at * 2 + 1);
    const instance = new WebAssembly.Instance(new WebAssembly.Module(binary), {});
    loaded = instance.exports as unknown as Exports;
  }
  return loaded;
}

/** A hexadecimal digit of the module: this spelling is larger than base64, and compresses to three quarters of it. */
function digit(at: number): number {
  const code = embedded.charCodeAt(at);
  return code < 58 ? code - 48 : code - 87;
}

/** The memory of the module, which moves when it grows. */
function memory(exports: Exports): Uint8Array {
  if (bytes.buffer !== exports.memory.buffer) bytes = new Uint8Array(exports.memory.buffer);
  return bytes;
}

/** Writes a string to the input of the module and returns its length in bytes. */
function write(exports: Exports, text: string): number {
  const capacity = text.length * 3;
  const at = exports.input(capacity);
  return encoder.encodeInto(text, memory(exports).subarray(at, at + capacity)).written;
}

function read(exports: Exports, len: number): Output | undefined {
  if (len <= 0) return undefined;
  const at = exports.output();
  return JSON.parse(decoder.decode(memory(exports).subarray(at, at + len))) as Output;
}

const unused = typeof FinalizationRegistry === "undefined"
  ? undefined
  : new FinalizationRegistry<number>((number) => loaded?.destroy(number));

/** What a delta changed: its text was added to the message with an index; nothing (`undefined`); or something else. */
export type Fed = number | Output | undefined;

/** One primitive of the module. */
export class Instance {
  readonly #exports = engine();
  #number: number;

  constructor(options: object) {
    this.#number = this.#exports.create(write(this.#exports, JSON.stringify(options)));
    if (this.#number < 0) {
      throw new TypeError("the options of the primitive are not valid");
    }
    unused?.register(this, this.#number, this);
  }

  start(): Output | undefined {
    return read(this.#exports, this.#exports.start(this.#number));
  }

  event(event: StreamEvent): Fed {
    // A delta without text is not valid, and the module reports the reason.
    const text = (event.payload as { readonly text?: unknown } | null | undefined)?.text;
    if (typeof text === "string" && isEvent(event, "cognition_out_delta")) return this.#delta(event, 0, text);
    if (typeof text === "string" && isEvent(event, "cognition_reasoning_delta")) return this.#delta(event, 1, text);
    return read(this.#exports, this.#exports.event(this.#number, write(this.#exports, JSON.stringify(event))));
  }

  #delta(event: StreamEvent, reasoning: number, text: string): Fed {
    const { seq, ts, turn, step, attempt } = event;
    const number = (event as { event?: number }).event ?? seq;
    const len = write(this.#exports, text);
    const fed = this.#exports.delta(this.#number, reasoning, number, ts, turn, step, attempt, len);
    if (fed >= 0) return fed;
    return fed === -1 ? undefined : read(this.#exports, -2 - fed);
  }

  child(child: ChildThread, line: StreamEvent): Output | undefined {
    const len = write(this.#exports, JSON.stringify({ child, line }));
    return read(this.#exports, this.#exports.child(this.#number, len));
  }

  act(name: string, fields: object): Output {
    const len = this.#exports.act(this.#number, write(this.#exports, JSON.stringify({ [name]: fields })));
    return read(this.#exports, len) ?? {};
  }

  destroy(): void {
    if (this.#number < 0) return;
    unused?.unregister(this);
    this.#exports.destroy(this.#number);
    this.#number = -1;
  }
}
