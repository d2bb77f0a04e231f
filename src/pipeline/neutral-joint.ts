// Going on with a stream of neutral events that broke off: what its reader has seen, what is asked for, and how another
// backend's events stand behind it.

import type { ContentPart } from "../generation/content.ts";
import type { GenerationEvent } from "../generation/events.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { StreamEncoder } from "../protocols/protocol.ts";
import { prefillOf } from "../protocols/seam.ts";
import type { Joint } from "./mid-stream.ts";

/** Where the reader's answer stands. */
export class SeenEvents {
  #text = "";
  #thought = "";
  #pieces = 0;
  /** The part that is open, and whether it has text. */
  #open: { index: number; type: string; length: number } | undefined;
  #nextIndex = 0;
  #hasStarted = false;
  /** A call, a refusal or anything else was begun that no other backend can end. */
  #isClosed = false;

  push(event: GenerationEvent): void {
    switch (event.type) {
      case "start":
        this.#hasStarted = true;
        return;
      case "part-start":
        this.#nextIndex = event.index + 1;
        this.#open = { index: event.index, type: event.part.type, length: 0 };
        if (event.part.type !== "text" && event.part.type !== "reasoning") this.#isClosed = true;
        return;
      case "delta":
        this.#pieces++;
        if (this.#open?.type === "text") {
          this.#text += event.text;
          this.#open.length += event.text.length;
        } else this.#thought += event.text;
        return;
      case "part-end":
        this.#open = undefined;
        return;
      case "finish":
      case "failure":
        this.#isClosed = true;
        return;
    }
  }

  /** @param emit - takes the events of the second backend, in the order and with the indexes of one answer */
  joint(emit: (event: GenerationEvent) => void): Joint {
    return {
      readSent: () =>
        this.#isClosed
          ? undefined
          : {
              text: this.#text,
              pieces: this.#pieces,
              openText: this.#open?.type === "text" ? this.#open.length : 0,
              hidesThoughts: this.#text !== "",
              goOn: ({ asking: { neutral } }) =>
                neutral && asRest(behind(neutral, this.#text, this.#thought, this.#pieces)),
              encoder: this.#hasStarted ? () => new Behind(emit, this.#open, this.#nextIndex) : undefined,
            },
      askForRest: ({ asking: { neutral } }, text, prompt) =>
        asRest(
          neutral && {
            ...neutral,
            messages: [
              ...neutral.messages,
              { role: "assistant", parts: [{ type: "text", text }] },
              { role: "user", parts: [{ type: "text", text: prompt }] },
            ],
          },
        ),
    };
  }
}

function asRest(neutral: GenerationRequest | undefined) {
  return neutral && { neutral };
}

/** The request with what was sent as the beginning of the model's turn; one token is always left for its end. */
function behind(
  request: GenerationRequest,
  text: string,
  thought: string,
  pieces: number,
): GenerationRequest | undefined {
  const { messages, maxOutputTokens } = request;
  if (messages.at(-1)?.role === "assistant") return undefined;
  const parts: ContentPart[] = [{ type: "text", text: prefillOf(text) }];
  if (thought !== "") parts.unshift({ type: "reasoning", text: thought });
  return {
    ...request,
    messages: [...messages, { role: "assistant", parts }],
    ...(maxOutputTokens !== undefined && { maxOutputTokens: Math.max(1, maxOutputTokens - pieces) }),
  };
}

/** Events of a second answer as the rest of the first one: it has begun, and its open text goes on. */
class Behind implements StreamEncoder {
  readonly #emit: (event: GenerationEvent) => void;
  #open: { index: number; type: string } | undefined;
  #nextIndex: number;
  /** From the second answer's indexes to the first one's. */
  readonly #indexes = new Map<number, number>();

  constructor(
    emit: (event: GenerationEvent) => void,
    open: { index: number; type: string } | undefined,
    nextIndex: number,
  ) {
    this.#emit = emit;
    this.#open = open;
    this.#nextIndex = nextIndex;
  }

  /** Writes nothing: the events have been emitted. */
  push(event: GenerationEvent): "" {
    if (event.type === "part-start") this.#start(event);
    else if ("index" in event) {
      const index = this.#indexes.get(event.index);
      if (index !== undefined) this.#emit({ ...event, index });
    } else if (event.type !== "start") {
      if (event.type === "finish") this.#close();
      this.#emit(event);
    }
    return "";
  }

  end(): "" {
    return "";
  }

  #start(event: Extract<GenerationEvent, { type: "part-start" }>): void {
    if (this.#open?.type === "text" && event.part.type === "text") {
      this.#indexes.set(event.index, this.#open.index);
      this.#open = undefined;
      return;
    }
    this.#close();
    const index = this.#nextIndex++;
    this.#indexes.set(event.index, index);
    this.#emit({ ...event, index });
  }

  /** The part of the first answer that stayed open, where nothing goes on with it. */
  #close(): void {
    if (this.#open !== undefined) this.#emit({ type: "part-end", index: this.#open.index });
    this.#open = undefined;
  }
}
