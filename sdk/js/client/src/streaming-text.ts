import { Primitive, type PrimitiveOptions } from "./primitive.js";
import type { SessionSource } from "./session.js";
import type { StreamingTextState } from "./view.js";

/** The text of the current answer so far, as shown. It begins again with each step. */
export class StreamingText extends Primitive<StreamingTextState> {
  constructor(client: SessionSource | null = null, options: PrimitiveOptions = {}) {
    super(client, options, { kind: "text" });
  }

  get text(): string {
    return this.view.streaming.text;
  }

  protected createSnapshot(): StreamingTextState {
    return this.view.streaming;
  }
}
