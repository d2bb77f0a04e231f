// One turn of the model inside an answer with searches: what goes to the client at once, what waits for the searches, and
// what is kept for the conversation.

import { Collector } from "../generation/collect.ts";
import type { SearchHit, ToolCallPart } from "../generation/content.ts";
import type { GenerationEvent } from "../generation/events.ts";
import type { Finish } from "../generation/result.ts";
import type { Usage } from "../generation/usage.ts";
import { citedResults } from "./citations.ts";

type PartEvent = Extract<GenerationEvent, { index: number }>;

interface RoundParts {
  /** The name of the function that stands for the search. */
  functionName: string;
  /** Numbers the parts of the whole answer. */
  nextIndex(): number;
  /** Only the first turn begins the answer. */
  isFirst: boolean;
  /** Results of earlier searches, where texts that name them are to get citations. */
  cited: readonly SearchHit[];
}

export class Round {
  /** The model's output so far. */
  readonly said = new Collector();
  finish: Finish | undefined;
  usage: Usage | undefined;
  /** True if the model has called tools that the client runs. */
  hasClientCalls = false;
  readonly #options: RoundParts;
  /** Index in this turn -> index in the answer. */
  readonly #indexes = new Map<number, number>();
  /** Calls of the search, by their index in this turn. */
  readonly #searches = new Set<number>();
  /** Events behind a call of the search, to be sent behind its result. */
  #held: PartEvent[] = [];

  constructor(options: RoundParts) {
    this.#options = options;
  }

  /** The calls of the search, in the order in which they began. */
  get searches(): ToolCallPart[] {
    // Parts stand in the order of their indexes, which have no gaps.
    const { parts } = this.said;
    return [...this.#searches].map((index) => parts[index]).filter((part) => part?.type === "tool-call");
  }

  /** Returns the events for the client. */
  push(event: GenerationEvent): readonly GenerationEvent[] {
    this.said.push(event);
    switch (event.type) {
      case "start":
        return this.#options.isFirst ? [event] : [];
      case "usage":
        this.usage = event.usage;
        return [];
      case "finish":
        this.finish = event.finish;
        return [];
      case "failure":
        return [];
      case "unknown":
        return [];
      case "part-start": {
        const { part, index } = event;
        if (part.type === "tool-call" && part.serverSide !== true) {
          if (part.name === this.#options.functionName) {
            this.#searches.add(index);
            return [];
          }
          this.hasClientCalls = true;
        }
        return this.#hand(event);
      }
      default:
        return this.#searches.has(event.index) ? [] : this.#hand(event);
    }
  }

  /** Returns the held events, to be sent with the results of the searches. */
  release(): GenerationEvent[] {
    const held = this.#held;
    this.#held = [];
    return held.flatMap((event) => this.#numbered(event));
  }

  #hand(event: PartEvent): readonly GenerationEvent[] {
    const isOpen = this.#indexes.has(event.index);
    if (!isOpen && this.#searches.size > 0) {
      this.#held.push(event);
      return [];
    }
    return this.#numbered(event);
  }

  #numbered(event: PartEvent): readonly GenerationEvent[] {
    if (event.type === "part-start") this.#indexes.set(event.index, this.#options.nextIndex());
    const index = this.#indexes.get(event.index);
    if (index === undefined) return []; // belongs to no part
    const own = index === event.index ? event : { ...event, index };
    return event.type === "part-end" ? [...this.#citations(event.index, index), own] : [own];
  }

  #citations(own: number, index: number): GenerationEvent[] {
    const { cited } = this.#options;
    const part = cited.length > 0 ? this.said.parts[own] : undefined;
    if (part?.type !== "text") return [];
    return citedResults(part.text, cited).map((citation) => ({ type: "citation", index, citation }));
  }
}
