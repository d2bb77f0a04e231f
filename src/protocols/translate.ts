// Drives a backend's codec and a client's codec together: whole answers and streams, bytes in, bytes out.

import { MAX_CITATIONS } from "../generation/answer-losses.ts";
import type { GenerationEvent } from "../generation/events.ts";
import type { Failure, GenerationResult } from "../generation/result.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import { type AnswerContext, type BackendProtocol, type ClientProtocol, DecodeError } from "./protocol.ts";
import { readEvents } from "./sse.ts";

/** Changes answers on their way, e.g. moves thoughts out of the text; stream and whole answer get the same. */
export interface AnswerTransform {
  result(result: GenerationResult): GenerationResult;
  /** One per stream. */
  stream(): EventTransform;
}

export interface EventTransform {
  push(event: GenerationEvent): readonly GenerationEvent[];
  /** What is held back, when the stream is over. */
  end(): readonly GenerationEvent[];
}

export interface TranslationParts {
  client: ClientProtocol;
  backend: BackendProtocol;
  context: AnswerContext;
  transforms: readonly AnswerTransform[];
  /** Sees every event of a stream as the client gets it. */
  sawEvent?(event: GenerationEvent): void;
  /** A stream had more citations than are kept. */
  lostCitation?(): void;
  /** A stream was complete. */
  sawEnd?(): void;
  /** Sees a whole answer as the client gets it. */
  sawResult?(result: GenerationResult): void;
}

export interface Translation {
  /**
   * A backend's whole answer -> the client's. Throws DecodeError when it is no answer of the backend's format.
   * @param parsed - what the body says, where it was parsed before; the bytes are not looked at then
   */
  plain(body: Uint8Array, parsed?: JsonObject): Uint8Array;
  stream(): StreamTranslator;
  /** The error behind an answer with an error status. */
  error(status: number, body: Uint8Array): Failure;
}

const decoder = new TextDecoder();
const encoder = new TextEncoder();

export function createTranslation(parts: TranslationParts): Translation {
  const { client, backend, context, transforms } = parts;
  return {
    plain(body, parsed = parseAnswer(body)) {
      let result = backend.decodeResponse(parsed);
      for (const transform of transforms) result = transform.result(result);
      parts.sawResult?.(result);
      return encoder.encode(JSON.stringify(client.encodeResponse(result, context)));
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

function parseAnswer(body: Uint8Array): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(body));
  } catch {
    throw new DecodeError("is not valid JSON");
  }
  if (!isObject(value)) throw new DecodeError("is no JSON object");
  return value;
}

export class StreamTranslator {
  readonly #decoder;
  readonly #encoder;
  readonly #transforms: readonly EventTransform[];
  readonly #sawEvent: TranslationParts["sawEvent"];
  readonly #lostCitation: TranslationParts["lostCitation"];
  readonly #sawEnd: TranslationParts["sawEnd"];
  #citations = 0;
  #hasFinish = false;
  #isOver = false;
  /** The error that the backend told of; nothing is written after it. */
  failure: Failure | undefined;

  constructor({ backend, client, context, transforms, sawEvent, lostCitation, sawEnd }: TranslationParts) {
    this.#decoder = backend.streamDecoder();
    this.#encoder = client.streamEncoder(context);
    this.#transforms = transforms.map((transform) => transform.stream());
    this.#sawEvent = sawEvent;
    this.#lostCitation = lostCitation;
    this.#sawEnd = sawEnd;
  }

  /** Whole events of the backend -> whole events for the client, undefined when there is nothing to send yet. */
  push(bytes: Uint8Array): Uint8Array | undefined {
    let text = "";
    for (const { data, name } of readEvents(decoder.decode(bytes))) {
      if (this.failure !== undefined || this.#isOver) break;
      text += this.#encode(this.#decoder.push(data, name), 0);
    }
    return text === "" ? undefined : encoder.encode(text);
  }

  /** The backend has said all it will say: the rest for the client. Does nothing when called again. */
  end(): Uint8Array | undefined {
    if (this.#isOver || this.failure !== undefined) return undefined;
    this.#isOver = true;
    let text = this.#encode(this.#decoder.end(), 0);
    for (const [index, transform] of this.#transforms.entries()) text += this.#encode(transform.end(), index + 1);
    if (this.isComplete) {
      text += this.#encoder.end();
      this.#sawEnd?.();
    }
    return text === "" ? undefined : encoder.encode(text);
  }

  /** Whether the answer was complete; to be asked after end(). */
  get isComplete(): boolean {
    return this.#hasFinish && this.failure === undefined;
  }

  /** The client's error event for a stream that cannot go on. */
  fail(failure: Failure): Uint8Array {
    this.#isOver = true;
    return encoder.encode(this.#encoder.push({ type: "failure", failure }));
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
      if (event.type === "finish") this.#hasFinish = true;
      else if (event.type === "citation" && ++this.#citations > MAX_CITATIONS) {
        this.#lostCitation?.();
        continue;
      }
      this.#sawEvent?.(event);
      text += this.#encoder.push(event);
    }
    return text;
  }
}
