// Speech and transcriptions that pass: streams of typed events, as the public API has them, and the chunks of engines such
// as vLLM, which look like those of chat.

import type { Usage } from "../../generation/usage.ts";
import { isObject, type JsonObject, parseObject } from "../../lib/json.ts";
import type { Verdict } from "../answer-reader.ts";
import { ChunkWatch } from "../chunk-watch.ts";
import { MarkedWatch, type Marks } from "../marked-watch.ts";
import { hasMarker, markersOf } from "../markers.ts";
import type { PassThrough, StreamWatch, WatchOptions } from "../protocol.ts";
import { decodeTokenCounts } from "../token-counts.ts";

const END = markersOf('"speech.audio.done"', '"transcript.text.done"');

const MARKS: Marks = {
  end: END,
  counts: END,
  countsIn: ({ usage }, before) => (isObject(usage) ? usage : before),
  decodeCounts: (counts) => decodeCounts(counts),
};

const decoder = new TextDecoder();
const encoder = new TextEncoder();

const CHUNK = markersOf('"choices"', "data: [DONE]");
const DATA = markersOf("data:");

export const audioPassThrough: PassThrough = {
  usageOf: ({ usage }) => decodeCounts(usage),
  preamble: new Set(["ping", "keepalive"]),
  asEvents: transcriptAsEvents,
  watch: (options) => new AudioWatch(options),
};

/** Tokens, or seconds: {"type": "duration", "seconds": 12} (OpenAI's TranscriptionUsageDuration). */
function decodeCounts(usage: unknown): Usage | undefined {
  const seconds = isObject(usage) && usage.type === "duration" ? usage.seconds : undefined;
  if (typeof seconds !== "number" || !(seconds >= 0)) return decodeTokenCounts(usage);
  return { input: { total: 0 }, output: { total: 0 }, audioSeconds: seconds };
}

/** Models that do not stream answer with the whole transcription (OpenAI: "whisper-1 ignores the parameter"). */
function transcriptAsEvents(answer: Uint8Array): Uint8Array | undefined {
  const transcription = parseObject(decoder.decode(answer));
  if (typeof transcription?.text !== "string") return undefined;
  const { text, usage } = transcription;
  const event = { type: "transcript.text.done", text, ...(isObject(usage) && { usage }) };
  return encoder.encode(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
}

/** Which of the two a stream is tells its first event. */
class AudioWatch implements StreamWatch {
  readonly #options: WatchOptions;
  #watch: StreamWatch | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  push(events: Uint8Array): Uint8Array | undefined {
    if (this.#watch === undefined && !hasMarker(events, DATA)) return events;
    this.#watch ??= hasMarker(events, CHUNK) ? new ChunkWatch(this.#options) : new MarkedWatch(MARKS, this.#options);
    return this.#watch.push(events);
  }

  get isDone(): boolean {
    return this.#watch?.isDone ?? false;
  }

  verdict(): Verdict {
    return this.#watch?.verdict() ?? "incomplete";
  }

  get reported(): JsonObject | undefined {
    return this.#watch?.reported;
  }

  get endMarker(): Uint8Array | undefined {
    return this.#watch?.endMarker;
  }

  get usage(): Usage | undefined {
    return this.#watch?.usage;
  }

  get itemIds(): readonly string[] {
    return [];
  }
}
