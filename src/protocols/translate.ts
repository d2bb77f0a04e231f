// Drives a backend's codec and a client's codec together: whole answers and streams, bytes in, bytes out.

import { MAX_CITATIONS } from "../generation/answer-losses.ts";
import { type AnswerTransform, type EventTransform, transformed } from "../generation/answer-transform.ts";
import { asEvents } from "../generation/as-events.ts";
import { Collector } from "../generation/collect.ts";
import type { GenerationEvent } from "../generation/events.ts";
import type { Failure, GenerationResult } from "../generation/result.ts";
import type { Usage } from "../generation/usage.ts";
import type { JsonObject } from "../lib/json.ts";
import type { AnswerReader, Verdict } from "./answer-reader.ts";
import {
  type AnswerContext,
  type BackendProtocol,
  type ClientProtocol,
  decodeObject,
  type KeptMembers,
} from "./protocol.ts";
import { readEvents } from "./sse.ts";
import { lastEvent } from "./stream-ending.ts";

export interface TranslationParts {
  client: ClientProtocol;
  backend: BackendProtocol;
  context: AnswerContext;
  transforms: readonly AnswerTransform[];
  /** Where both speak one format: see BackendProtocol.streamDecoder(). */
  keeps?: KeptMembers;
  /** Sees every event of an answer as the client gets it; a whole answer as a stream that says the same. */
  sawEvent?(event: GenerationEvent): void;
  /** A stream had more citations than are kept. */
  lostCitation?(): void;
  /** The answer was complete. */
  sawEnd?(): void;
}

export interface TranslatedAnswer {
  body: Uint8Array;
  /** Undefined where the backend did not count. */
  usage: Usage | undefined;
}

export interface Translation {
  /**
   * A backend's whole answer -> the client's. Throws DecodeError when it is no answer of the backend's format.
   * @param parsed - what the body says, where it was parsed before; the bytes are not looked at then
   */
  plain(body: Uint8Array, parsed?: JsonObject): TranslatedAnswer;
  stream(): AnswerReader;
  /** The error behind an answer with an error status. */
  error(status: number, body: Uint8Array): Failure;
}

const decoder = new TextDecoder();
const encoder = new TextEncoder();

export function createTranslation(parts: TranslationParts): Translation {
  const { client, backend, context } = parts;
  return {
    plain(body, parsed = decodeObject(decoder.decode(body))) {
      const result = asAnswered(asEvents(backend.decodeResponse(parsed)), parts);
      return { body: encoder.encode(JSON.stringify(client.encodeResponse(result, context))), usage: result.usage };
    },
    stream: () => new StreamTranslator(parts),
    error(status, body) {
      let value: unknown;
      try {
        value = JSON.parse(decoder.decode(body));
      } catch {
        value = undefined; // HTML and plain text are common here; the status says enough
      }
      return backend.decodeError(status, value);
    },
  };
}

/** A whole answer as the client gets it. */
function asAnswered(events: GenerationEvent[], { transforms, sawEvent, sawEnd }: TranslationParts): GenerationResult {
  const collector = new Collector();
  for (const event of transforms.reduce(transformed, events)) {
    sawEvent?.(event);
    collector.push(event);
  }
  sawEnd?.();
  return collector.result() as GenerationResult;
}

/** Reads a stream that the client gets in another format. */
class StreamTranslator implements AnswerReader {
  readonly #decoder;
  readonly #encoder;
  readonly #transforms: readonly EventTransform[];
  readonly #parts: TranslationParts;
  #citations = 0;
  #hasEnded = false;
  isOver = false;
  /** The error that the backend reported; nothing is written after it. */
  failure: Failure | undefined;

  constructor(parts: TranslationParts) {
    const { backend, client, context, transforms, keeps } = parts;
    this.#parts = parts;
    this.#decoder = backend.streamDecoder(keeps);
    this.#encoder = client.streamEncoder(context);
    this.#transforms = transforms.map((transform) => transform());
  }

  push(events: Uint8Array): Uint8Array | undefined {
    const text = this.#read(events);
    return toBytes(this.isOver ? text + this.#rest() : text);
  }

  end(rest?: Uint8Array): Uint8Array | undefined {
    const last = rest && lastEvent(rest);
    const text = last === undefined ? "" : this.#read(last);
    return toBytes(text + this.#rest());
  }

  get verdict(): Verdict {
    return this.isOver && this.failure === undefined ? "done" : "incomplete";
  }

  fail(failure: Failure): Uint8Array {
    this.#hasEnded = true;
    return encoder.encode(this.#encoder.push({ type: "failure", failure }));
  }

  #read(received: Uint8Array): string {
    const events = this.#parts.keeps?.edits?.push(received) ?? received;
    let text = "";
    for (const { data, name } of readEvents(decoder.decode(events))) {
      if (this.failure !== undefined || this.#hasEnded) break;
      text += this.#encode(this.#decoder.push(data, name), 0);
    }
    return text;
  }

  /** The backend has said all it will say. Does nothing when called again. */
  #rest(): string {
    if (this.#hasEnded || this.failure !== undefined) return "";
    this.#hasEnded = true;
    let text = this.#encode(this.#decoder.end(), 0);
    for (const [index, transform] of this.#transforms.entries()) text += this.#encode(transform.end(), index + 1);
    if (this.verdict === "done") {
      text += this.#encoder.end();
      this.#parts.sawEnd?.();
    }
    return text;
  }

  /** Events behind the given number of transforms -> the client's text. */
  #encode(events: readonly GenerationEvent[], passed: number): string {
    let text = "";
    for (const event of events) {
      if (event.type === "failure") {
        this.failure = event.failure;
        break;
      }
      const transform = this.#transforms[passed];
      if (transform !== undefined) {
        text += this.#encode(transform.push(event), passed + 1);
        continue;
      }
      if (event.type === "finish") this.isOver = true;
      else if (event.type === "citation" && ++this.#citations > MAX_CITATIONS) {
        this.#parts.lostCitation?.();
        continue;
      }
      this.#parts.sawEvent?.(event);
      text += this.#encoder.push(event);
    }
    return text;
  }
}

function toBytes(text: string): Uint8Array | undefined {
  return text === "" ? undefined : encoder.encode(text);
}
