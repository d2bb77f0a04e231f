// What hooks do with the events of an answer: piece by piece where they read streams, as a whole where they read answers alone.

import { asEvents } from "../generation/as-events.ts";
import { Collector } from "../generation/collect.ts";
import type { GenerationEvent } from "../generation/events.ts";
import type { GenerationResult } from "../generation/result.ts";
import type { ChunkKind } from "../hooks/define.ts";
import { NEUTRAL } from "../hooks/neutral-forms.ts";
import { TextCutter } from "../hooks/text-cutter.ts";
import { type CalledHook, type ChunkCounts, type HookRun, hasEvent } from "./hook-run.ts";

/** Asks the model again, with its answer and a message behind the conversation; undefined where that is not possible. */
export type RepairAsk = (said: string, message: string) => Promise<GenerationResult | undefined>;

interface AnswerStage {
  push(event: GenerationEvent): Promise<readonly GenerationEvent[]>;
  /** The stream is over, whole or not. */
  end(): void;
}

/** Longer answers are not held back for a hook that reads whole ones. */
const MAX_WHOLE_CHARACTERS = 8 * 1024 * 1024;

const encoder = new TextEncoder();

/** All events of an answer through all hooks that read answers. Throws refusals. */
export class AnswerStages {
  readonly #stages: readonly AnswerStage[];

  constructor(run: HookRun, readers: readonly CalledHook[], askAgain: RepairAsk) {
    this.#stages = readers.map((called) =>
      hasEvent(called.hook, called.loaded, "chunk")
        ? new ChunkStage(run, called)
        : new WholeStage(run, called, askAgain),
    );
  }

  async push(event: GenerationEvent): Promise<readonly GenerationEvent[]> {
    let events: readonly GenerationEvent[] = [event];
    for (const stage of this.#stages) {
      const next: GenerationEvent[] = [];
      for (const each of events) next.push(...(await stage.push(each)));
      events = next;
      if (events.length === 0) break;
    }
    return events;
  }

  end(): void {
    for (const stage of this.#stages) stage.end();
  }
}

interface CutPart {
  part: ChunkKind;
  cutter: TextCutter;
  /** The end of an earlier piece, which the hook wants to see with the next one. */
  rest: string;
}

/** Hands the texts of an answer to a hook, cut as it wants them. */
class ChunkStage implements AnswerStage {
  readonly #run: HookRun;
  readonly #called: CalledHook;
  readonly #open = new Map<number, CutPart>();
  readonly #counts: ChunkCounts = { changes: 0, passes: 0, durationMs: 0 };
  #isFailing = false;

  constructor(run: HookRun, called: CalledHook) {
    this.#run = run;
    this.#called = called;
  }

  async push(event: GenerationEvent): Promise<readonly GenerationEvent[]> {
    const { chunks } = this.#called.loaded;
    switch (event.type) {
      case "part-start": {
        const { type } = event.part;
        if (!(chunks.parts as readonly string[]).includes(type)) return [event];
        this.#open.set(event.index, { part: type as ChunkKind, cutter: new TextCutter(chunks), rest: "" });
        return [event];
      }
      case "delta": {
        const open = this.#open.get(event.index);
        if (open === undefined) return [event];
        const events: GenerationEvent[] = [];
        for (const piece of open.cutter.push(event.text))
          events.push(...(await this.#give(event.index, open, piece, false)));
        return events;
      }
      case "part-end": {
        const open = this.#open.get(event.index);
        if (open === undefined) return [event];
        this.#open.delete(event.index);
        return [...(await this.#give(event.index, open, open.cutter.end(), true)), event];
      }
      case "failure": {
        const events: GenerationEvent[] = [];
        for (const [index, open] of this.#open)
          events.push(...(await this.#give(index, open, open.cutter.end(), true)));
        this.#open.clear();
        return [...events, event];
      }
      default:
        return [event];
    }
  }

  end(): void {
    this.#run.tellChunks(this.#called, this.#counts);
  }

  async #give(index: number, open: CutPart, piece: string, isLast: boolean): Promise<GenerationEvent[]> {
    const text = open.rest + piece;
    open.rest = "";
    if (text === "" || this.#isFailing) return deltaOf(index, text);
    const startedAtMs = this.#run.now();
    const data = { part: open.part, index, text, isLast };
    const verdict = await this.#run.call(this.#called, "chunk", data, undefined);
    this.#counts.durationMs += this.#run.now() - startedAtMs;
    if (verdict.kind !== "change") {
      this.#counts.passes++;
      return deltaOf(index, text);
    }
    const { text: changed = "", rest = "" } = verdict;
    const isTooMuch =
      rest.length > Math.max(this.#called.loaded.chunks.hold, open.cutter.bound) || (isLast && rest !== "");
    if (isTooMuch) {
      this.#isFailing = true;
      this.#run.failed(this.#called.hook, "chunk");
      return deltaOf(index, text);
    }
    if (changed + rest === text) this.#counts.passes++;
    else this.#counts.changes++;
    open.rest = rest;
    return deltaOf(index, changed);
  }
}

function deltaOf(index: number, text: string): GenerationEvent[] {
  return text === "" ? [] : [{ type: "delta", index, text }];
}

/** Holds an answer back until it is whole, and the hook has seen it. */
class WholeStage implements AnswerStage {
  readonly #run: HookRun;
  readonly #called: CalledHook;
  readonly #askAgain: RepairAsk;
  readonly #collector = new Collector();
  #held: GenerationEvent[] = [];
  #isOpen = false;

  constructor(run: HookRun, called: CalledHook, askAgain: RepairAsk) {
    this.#run = run;
    this.#called = called;
    this.#askAgain = askAgain;
  }

  async push(event: GenerationEvent): Promise<readonly GenerationEvent[]> {
    if (this.#isOpen) return [event];
    // What the hook has not seen is not told.
    if (event.type === "failure") return [event];
    this.#held.push(event);
    this.#collector.push(event);
    if (this.#collector.size > MAX_WHOLE_CHARACTERS) {
      this.#run.failed(this.#called.hook, "answer");
      return this.#release();
    }
    if (event.type !== "finish") return [];
    const result = this.#collector.result() as GenerationResult;
    const changed = await checkedResult(this.#run, this.#called, result, this.#askAgain);
    if (changed === undefined) return this.#release();
    this.#release();
    return asEvents(changed);
  }

  end(): void {
    this.#held = [];
  }

  #release(): readonly GenerationEvent[] {
    const held = this.#held;
    this.#held = [];
    this.#isOpen = true;
    return held;
  }
}

/** A whole answer before a hook; undefined: it stays. */
async function checkedResult(
  run: HookRun,
  called: CalledHook,
  result: GenerationResult,
  askAgain: RepairAsk,
): Promise<GenerationResult | undefined> {
  let left = result;
  for (let round = 0; ; round++) {
    const body = encoder.encode(JSON.stringify(left));
    const verdict = await run.call(
      called,
      "answer",
      { body, round, format: NEUTRAL },
      () => `${body.length} bytes before`,
    );
    switch (verdict.kind) {
      case "answer":
        return named(verdict.result, left);
      case "change":
        return verdict.result;
      case "repair": {
        const again = round === 0 ? await askAgain(textOf(left), verdict.message) : undefined;
        if (again === undefined) {
          run.failed(called.hook, "answer");
          return undefined;
        }
        left = { ...again, id: left.id, model: left.model, createdAt: left.createdAt };
        break;
      }
      default:
        return left === result ? undefined : left;
    }
  }
}

/** An answer that a hook has written, under the id and the name that the client expects. */
export function named(
  result: GenerationResult,
  { id, model, createdAt }: Pick<GenerationResult, "id" | "model" | "createdAt">,
) {
  return { ...result, id: result.id || id, model: result.model || model, createdAt: result.createdAt || createdAt };
}

export function textOf({ parts }: GenerationResult): string {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}
