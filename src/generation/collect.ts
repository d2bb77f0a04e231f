// Events -> the whole answer. Incremental, so that a caller can look at what has come so far and stop at a limit.

import { compact } from "../lib/json.ts";
import type { Citation, ContentPart } from "./content.ts";
import type { GenerationEvent, PartStart } from "./events.ts";
import type { Failure, Finish, GenerationResult } from "./result.ts";
import type { Usage } from "./usage.ts";

type Delta = Extract<GenerationEvent, { type: "delta" }>;
type TextSeal = Extract<GenerationEvent, { type: "seal" }>;

/** One per answer. Nothing is limited here: the caller watches `size`. */
export class Collector {
  /** In the order of part-start, which is the order of the indexes. */
  readonly #parts = new Map<number, ContentPart>();
  #head = { id: "", model: "", createdAt: 0 };
  #usage: Usage | undefined;
  #finish: Finish | undefined;
  #failure: Failure | undefined;
  #size = 0;

  push(event: GenerationEvent): void {
    switch (event.type) {
      case "start": {
        const { id, model, createdAt } = event;
        this.#head = { id, model, createdAt };
        return;
      }
      case "part-start":
        this.#parts.set(event.index, firstState(event.part));
        return;
      case "delta":
        this.#append(event);
        return;
      case "seal":
        this.#seal(event);
        return;
      case "citation":
        this.#cite(event.index, event.citation);
        return;
      case "usage":
        this.#usage = event.usage;
        return;
      case "finish":
        this.#finish = event.finish;
        return;
      case "failure":
        this.#failure = event.failure;
        return;
      case "part-end":
        return;
    }
  }

  /** Characters of text, reasoning and arguments so far. */
  get size(): number {
    return this.#size;
  }

  /** What the backend said went wrong. */
  get failure(): Failure | undefined {
    return this.#failure;
  }

  /** The parts so far; those that are still open hold what has come of them. */
  get parts(): ContentPart[] {
    return [...this.#parts.values()];
  }

  /** The answer; undefined while it is not complete. */
  result(): GenerationResult | undefined {
    if (this.#finish === undefined || this.#failure !== undefined) return undefined;
    return { ...this.#head, parts: this.parts, finish: this.#finish, ...compact({ usage: this.#usage }) };
  }

  #append({ index, text }: Delta): void {
    const part = this.#parts.get(index);
    if (part === undefined) return;
    if (part.type === "tool-call") part.arguments += text;
    else if (part.type === "text" || part.type === "reasoning" || part.type === "refusal") part.text += text;
    else return;
    this.#size += text.length;
  }

  #seal({ index, origin, signature, sealed }: TextSeal): void {
    const part = this.#parts.get(index);
    if (part?.type === "text") Object.assign(part, compact({ signature }));
    else if (part?.type === "reasoning") Object.assign(part, { origin, ...compact({ signature, sealed }) });
  }

  #cite(index: number, citation: Citation): void {
    const part = this.#parts.get(index);
    if (part?.type !== "text") return;
    part.citations ??= [];
    part.citations.push(citation);
  }
}

/** The whole answer of a complete sequence of events; undefined when it has no finish or a failure. */
export function collect(events: Iterable<GenerationEvent>): GenerationResult | undefined {
  const collector = new Collector();
  for (const event of events) collector.push(event);
  return collector.result();
}

/** The part as it grows: a copy of its own, so that events stay as they were given. */
function firstState(part: PartStart): ContentPart {
  switch (part.type) {
    case "text":
    case "refusal":
    case "reasoning":
      return { ...part, text: "" };
    case "tool-call":
      return { ...part, arguments: "" };
    default:
      return part;
  }
}
