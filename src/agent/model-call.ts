// One call of a model: its answer, told to the person while it comes.

import { Collector } from "../generation/collect.ts";
import type { ContentPart } from "../generation/content.ts";
import type { GenerationEvent } from "../generation/events.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { GenerationResult } from "../generation/result.ts";
import type { Usage } from "../generation/usage.ts";
import { unlessAborted } from "../lib/abortable-delay.ts";
import type { ModelAccess } from "./agent.ts";
import { failureOfError, ModelFailure } from "./model-failure.ts";
import type { Update } from "./updates.ts";

interface CallParts {
  model: Pick<ModelAccess, "generate">;
  signal: AbortSignal;
  tell(update: Update): void;
  begun(): void;
}

/** `said`: what came before the end that was none. */
export type CallOutcome = { usage: Usage | undefined } & (
  | { kind: "answer"; result: GenerationResult }
  | { kind: "failed"; failure: ModelFailure; said: ContentPart[] }
  | { kind: "cancelled"; said: ContentPart[] }
);

/** An answer that is longer is one of a model that runs in circles. In UTF-16 code units. */
const MAX_ANSWER_LENGTH = 16 * 1024 * 1024;
const MAX_PARTS = 2_000;

const BROKEN = { message: "The backend ended the stream before its answer was complete.", status: 502 };
const TOO_MUCH = { message: "The answer of the model was too long to be read.", status: 502 };

/** Throws for bugs only. */
export async function callModel(
  request: GenerationRequest,
  { model, signal, tell, begun }: CallParts,
): Promise<CallOutcome> {
  const collector = new Collector();
  const told = new AnswerTeller(tell);
  let usage: Usage | undefined;
  const failed = (failure: ModelFailure): CallOutcome => ({ kind: "failed", failure, said: collector.parts, usage });
  const stop = new AbortController();
  const events = model.generate(request, { signal: AbortSignal.any([signal, stop.signal]) });
  try {
    for (;;) {
      const next = await unlessAborted(events.next(), signal);
      if (next.done === true) break;
      const event = next.value;
      if (event.type !== "failure") begun();
      collector.push(event);
      told.push(event);
      if (event.type === "usage") usage = event.usage;
      if (collector.failure !== undefined) break;
      if (collector.size > MAX_ANSWER_LENGTH || told.parts > MAX_PARTS) {
        return { kind: "failed", failure: new ModelFailure(TOO_MUCH), said: [], usage };
      }
    }
  } catch (error) {
    if (signal.aborted) return { kind: "cancelled", said: collector.parts, usage };
    const failure = failureOfError(error);
    if (failure === undefined) throw error;
    return failed(failure);
  } finally {
    // Frees the backend, also where the generator waits and does not come to its end.
    stop.abort();
    events.return().catch(() => {});
  }
  const result = collector.result();
  if (result === undefined && signal.aborted) return { kind: "cancelled", said: collector.parts, usage };
  if (result !== undefined) return { kind: "answer", result, usage };
  return failed(new ModelFailure(collector.failure ?? BROKEN));
}

/** Tells texts, thoughts and images as they come. */
class AnswerTeller {
  parts = 0;
  readonly #tell: (update: Update) => void;
  readonly #kinds = new Map<number, "text" | "thought">();

  constructor(tell: (update: Update) => void) {
    this.#tell = tell;
  }

  push(event: GenerationEvent): void {
    if (event.type === "part-start") {
      this.parts++;
      const { part, index } = event;
      if (part.type === "text" || part.type === "refusal") this.#kinds.set(index, "text");
      else if (part.type === "reasoning") this.#kinds.set(index, "thought");
      else if (part.type === "image") this.#tell({ type: "image", part });
      return;
    }
    if (event.type !== "delta") return;
    const kind = this.#kinds.get(event.index);
    if (kind !== undefined) this.#tell({ type: kind, text: event.text });
  }
}
