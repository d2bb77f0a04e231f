// One turn of the model inside an answer with searches: what goes to the client at once, what waits for the searches, and
// what is kept for the conversation.

import { Collector } from "../generation/collect.ts";
import type { ContentPart, SearchHit, ToolCallPart } from "../generation/content.ts";
import type { GenerationEvent } from "../generation/events.ts";
import type { Failure, Finish } from "../generation/result.ts";
import type { Usage } from "../generation/usage.ts";
import { citedResults } from "./citations.ts";

type PartEvent = Extract<GenerationEvent, { index: number }>;

export interface RoundOptions {
  /** The name of the function that stands for the search. */
  functionName: string;
  /** Numbers the parts of the whole answer. */
  nextIndex(): number;
  /** Only the first turn begins the answer. */
  isFirst: boolean;
  /** What earlier searches found, where texts that name it are to be given citations. */
  cited: readonly SearchHit[];
}

export class Round {
  readonly #options: RoundOptions;
  readonly #collector = new Collector();
  /** Index in this turn -> index in the answer. */
  readonly #indexes = new Map<number, number>();
  /** Calls of the search, by their index in this turn. */
  readonly #searches = new Set<number>();
  readonly #texts = new Map<number, string>();
  /** What came behind a call of the search is sent behind its result. */
  #held: PartEvent[] = [];
  #finish: Finish | undefined;
  #failure: Failure | undefined;
  #usage: Usage | undefined;
  #hasClientCalls = false;

  constructor(options: RoundOptions) {
    this.#options = options;
  }

  get finish(): Finish | undefined {
    return this.#finish;
  }

  get failure(): Failure | undefined {
    return this.#failure;
  }

  get usage(): Usage | undefined {
    return this.#usage;
  }

  /** Whether the model has called tools that the client runs. */
  get hasClientCalls(): boolean {
    return this.#hasClientCalls;
  }

  /** Characters so far. */
  get size(): number {
    return this.#collector.size;
  }

  get parts(): ContentPart[] {
    return this.#collector.parts;
  }

  /** The calls of the search, in the order in which they began. */
  get searches(): ToolCallPart[] {
    // Parts stand in the order of their indexes, which have no gaps.
    const { parts } = this.#collector;
    return [...this.#searches].map((index) => parts[index]).filter((part) => part?.type === "tool-call");
  }

  /** What the client gets now. */
  push(event: GenerationEvent): readonly GenerationEvent[] {
    this.#collector.push(event);
    switch (event.type) {
      case "start":
        return this.#options.isFirst ? [event] : [];
      case "usage":
        this.#usage = event.usage;
        return [];
      case "finish":
        this.#finish = event.finish;
        return [];
      case "failure":
        this.#failure = event.failure;
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
          this.#hasClientCalls = true;
        }
        return this.#hand(event);
      }
      default:
        return this.#searches.has(event.index) ? [] : this.#hand(event);
    }
  }

  /** What was held back; to be sent when the results of the searches are. */
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
    if (this.#options.cited.length > 0) {
      if (event.type === "part-start" && event.part.type === "text") this.#texts.set(event.index, "");
      else if (event.type === "delta") this.#append(event.index, event.text);
      else if (event.type === "part-end") return [...this.#citations(event.index, index), { ...event, index }];
    }
    return index === event.index ? [event] : [{ ...event, index }];
  }

  #append(index: number, text: string): void {
    const before = this.#texts.get(index);
    if (before !== undefined) this.#texts.set(index, before + text);
  }

  #citations(own: number, index: number): GenerationEvent[] {
    const text = this.#texts.get(own);
    if (text === undefined) return [];
    this.#texts.delete(own);
    return citedResults(text, this.#options.cited).map((citation) => ({ type: "citation", index, citation }));
  }
}
