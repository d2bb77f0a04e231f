// Whether a stream that passes untouched was complete, for each wire format.

import type { ProtocolName } from "../generation/content.ts";
import type { Verdict } from "./answer-reader.ts";
import { hasMarker, type Markers, markersOf } from "./markers.ts";
import { readEvents } from "./sse.ts";
import { StreamEnding } from "./stream-ending.ts";

export interface StreamWatch {
  /** Remembers a piece of whole events; true when the answer's own end marker was in it. */
  saw(events: Uint8Array): boolean;
  /** What the end of the stream means; `finished` = only the marker [DONE] is missing. */
  verdict(): Verdict;
}

/** What only the last event of a complete answer contains. A quote inside a JSON string is escaped, so text never does. */
const MARKERS: Partial<Record<ProtocolName, Markers>> = {
  messages: markersOf('"message_stop"'),
  responses: markersOf('"response.completed"', '"response.incomplete"', '"response.failed"'),
};

export function watchEnding(protocol: ProtocolName, choices: number): StreamWatch {
  const markers = MARKERS[protocol];
  return markers === undefined ? new StreamEnding(choices) : new MarkedEnding(markers);
}

const decoder = new TextDecoder();

class MarkedEnding implements StreamWatch {
  readonly #markers: Markers;
  #isDone = false;
  #last: Uint8Array | undefined;

  constructor(markers: Markers) {
    this.#markers = markers;
  }

  saw(events: Uint8Array): boolean {
    this.#last = events;
    if (hasMarker(events, this.#markers)) this.#isDone = true;
    return this.#isDone;
  }

  verdict(): Verdict {
    if (this.#isDone) return "done";
    const last = this.#last === undefined ? undefined : readEvents(decoder.decode(this.#last)).at(-1);
    return last !== undefined && isErrorEvent(last.data) ? "reported" : "incomplete";
  }
}

function isErrorEvent(data: string): boolean {
  try {
    return (JSON.parse(data) as { type?: unknown } | null)?.type === "error";
  } catch {
    return false;
  }
}
