// A model that says what a test wrote for it, as the neutral entry would tell it: one entry of the script per call.

import type { ModelAccess } from "../../src/agent/agent.ts";
import type { GenerationEvent, PartStart } from "../../src/generation/events.ts";
import type { GenerationRequest } from "../../src/generation/request.ts";
import type { FinishReason } from "../../src/generation/result.ts";
import type { Usage } from "../../src/generation/usage.ts";

export interface ScriptedCall {
  name: string;
  /** An object, or the text that stands for one. */
  arguments?: unknown;
  id?: string;
  signature?: string;
}

/** In this order: thought, text, calls, then what else is said. */
export interface ScriptedAnswer {
  thought?: string;
  /** Proof of the thought, made by this format. */
  signed?: { origin: string; signature: string };
  text?: string;
  refusal?: string;
  calls?: readonly ScriptedCall[];
  /** Left out: what fits the calls. `none`: the answer breaks off. */
  finish?: FinishReason | "none";
  usage?: Usage;
  /** A failure event in place of the finish; of an answer that says nothing it is the only event. */
  failure?: { message: string; status: number; type?: string; code?: string };
  /** Thrown before anything is said. */
  thrown?: Error;
  /** Waited for before the finish. */
  holds?: Promise<unknown>;
}

export class ScriptedModel implements ModelAccess {
  /** What it was asked, as it was then. */
  readonly requests: GenerationRequest[] = [];
  /** Calls whose generators have come to their end. */
  ended = 0;
  readonly #script: readonly (ScriptedAnswer | ((request: GenerationRequest) => ScriptedAnswer))[];
  readonly #window: number | undefined;
  #calls = 0;

  constructor(
    script: readonly (ScriptedAnswer | ((request: GenerationRequest) => ScriptedAnswer))[],
    { window }: { window?: number } = {},
  ) {
    this.#script = script;
    this.#window = window;
  }

  contextWindow(): number | undefined {
    return this.#window;
  }

  async *generate(
    request: GenerationRequest,
    { signal }: { signal: AbortSignal },
  ): AsyncGenerator<GenerationEvent, void> {
    this.requests.push(structuredClone(request));
    const number = this.#calls++;
    const step = this.#script[number];
    if (step === undefined) throw new Error(`the script has no answer number ${number}`);
    const answer = typeof step === "function" ? step(request) : step;
    try {
      if (answer.thrown !== undefined) throw answer.thrown;
      yield* eventsOf(answer, number, signal);
    } finally {
      this.ended++;
    }
  }
}

async function* eventsOf(answer: ScriptedAnswer, number: number, signal: AbortSignal): AsyncGenerator<GenerationEvent> {
  const { thought, signed, text, refusal, calls = [], usage, failure, holds } = answer;
  const saysSomething = thought !== undefined || text !== undefined || refusal !== undefined || calls.length > 0;
  if (failure === undefined || saysSomething) yield { type: "start", id: `answer-${number}`, model: "m", createdAt: 0 };
  let index = 0;
  function* part(start: PartStart, said: string, seal?: ScriptedAnswer["signed"]): Generator<GenerationEvent> {
    yield { type: "part-start", index, part: start };
    for (const piece of said.match(/[\s\S]{1,7}/g) ?? []) yield { type: "delta", index, text: piece };
    if (seal !== undefined) yield { type: "seal", index, ...seal };
    yield { type: "part-end", index };
    index++;
  }
  if (thought !== undefined) yield* part({ type: "reasoning" }, thought, signed);
  if (text !== undefined) yield* part({ type: "text" }, text);
  if (refusal !== undefined) yield* part({ type: "refusal" }, refusal);
  for (const [place, { name, arguments: input = {}, id = `call_${number}_${place}`, signature }] of calls.entries()) {
    const start = { type: "tool-call" as const, id, name, ...(signature !== undefined && { signature }) };
    yield* part(start, typeof input === "string" ? input : JSON.stringify(input));
  }
  if (holds !== undefined) await untilAborted(holds, signal);
  if (usage !== undefined) yield { type: "usage", usage };
  if (failure !== undefined) yield { type: "failure", failure };
  else if (answer.finish !== "none") {
    yield { type: "finish", finish: { reason: answer.finish ?? (calls.length > 0 ? "tool-calls" : "stop") } };
  }
}

async function untilAborted(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort);
  try {
    await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
