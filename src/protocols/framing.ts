// How a stream is written for clients that do not read Server-Sent Events. Inside the gateway every stream consists of such
// events; a framing gives their data another form on the last step to the client.

import { EventFramer, eventData } from "./sse.ts";
import { lastEvent } from "./stream-ending.ts";

export interface Framing {
  contentType: string;
  /** One per stream. */
  writer(): FrameWriter;
}

/** Puts the data of events, usually JSON texts, into another form. */
interface FrameWriter {
  event(data: string): string;
  /** What stands behind the last event. */
  end(): string;
}

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** Rewrites one stream, whatever pieces it comes in. Comments and events without data are left out. */
export class EventRewriter {
  readonly #framer: EventFramer;
  readonly #writer: FrameWriter;

  /** @param maxEventBytes - of what is held until an event is whole */
  constructor(framing: Framing, maxEventBytes?: number) {
    this.#framer = new EventFramer(maxEventBytes);
    this.#writer = framing.writer();
  }

  /** Undefined when there is nothing to write yet. Throws RangeError for an event that is too large. */
  push(piece: Uint8Array): Uint8Array | undefined {
    const events = this.#framer.push(piece);
    return events && toBytes(this.#written(events));
  }

  /** The stream is over. */
  end(): Uint8Array | undefined {
    const last = lastEvent(this.#framer.rest());
    return toBytes((last === undefined ? "" : this.#written(last)) + this.#writer.end());
  }

  #written(events: Uint8Array): string {
    let text = "";
    for (const data of eventData(decoder.decode(events))) text += this.#writer.event(data);
    return text;
  }
}

function toBytes(text: string): Uint8Array | undefined {
  return text === "" ? undefined : encoder.encode(text);
}

/** A whole stream of events, such as one that was kept. */
export function rewritten(events: Uint8Array, framing: Framing): Uint8Array {
  const rewriter = new EventRewriter(framing, events.length);
  const pieces = [rewriter.push(events), rewriter.end()];
  return Buffer.concat(pieces.filter((piece) => piece !== undefined));
}
