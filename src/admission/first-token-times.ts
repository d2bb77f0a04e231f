// How long the first tokens of a backend's answers take: seen, and without a queue.

import type { SlotEnd } from "./admission.ts";

/** Fewer say nothing. */
const LEAST = 8;
/** Square of the least variation, by the mean, of the lengths of plain answers that tells how long one of their tokens takes. */
const LEAST_VARIATION = 0.04;
/** The same of how much longer inputs come with longer answers. */
const MOST_CORRELATION = 0.95;

/** Streams, or plain answers: what was seen of them in a window, and how long a first token takes without a queue. */
export class FirstTokenTimes {
  readonly #isStream: boolean;
  #sums = newSums();
  /** Milliseconds of a first token, without a queue: by a request, and by a token of its input. */
  #base = 0;
  #baseOfToken = 0;

  constructor(isStream: boolean) {
    this.#isStream = isStream;
  }

  add({ inputTokens = 0, cachedTokens = 0, outputTokens, firstByteMs, durationMs }: SlotEnd): void {
    const sums = this.#sums;
    const input = Math.max(0, inputTokens - cachedTokens);
    const output = outputTokens ?? 0;
    const first = Math.min(firstByteMs ?? durationMs, durationMs);
    sums.count++;
    sums.input += input;
    sums.inputInput += input * input;
    sums.whole += durationMs;
    sums.inputWhole += input * durationMs;
    sums.first += first;
    sums.inputFirst += input * first;
    sums.output += output;
    sums.outputOutput += output * output;
    sums.outputWhole += output * durationMs;
    sums.inputOutput += input * output;
  }

  get isTelling(): boolean {
    const { count, output } = this.#sums;
    if (count < LEAST) return false;
    if (this.#isStream) return true;
    const { inputs, outputs, both } = this.#spread();
    return outputs > LEAST_VARIATION * output * output && both * both <= MOST_CORRELATION * inputs * outputs;
  }

  get tokens(): number {
    const { count, input, output } = this.#sums;
    return count + input + output; // backends that tell of no tokens are counted by requests
  }

  get wholeMs(): number {
    return this.#sums.whole;
  }

  /** Of the requests in flight: those that wait for a place in the batch. */
  partThatWaits(): number {
    const { count, input, whole } = this.#sums;
    const waitMs = this.#first().first - count * this.#base - input * this.#baseOfToken;
    return whole > 0 ? Math.min(1, Math.max(0, waitMs / whole)) : 0;
  }

  /** Of the duration of the requests: what their first tokens take without a queue. */
  partOfBase(): number {
    const { count, input, whole } = this.#sums;
    return whole > 0 ? (count * this.#base + input * this.#baseOfToken) / whole : 0;
  }

  /** No requests waited in this window. */
  learn(): void {
    if (!this.isTelling) return;
    const { count, input, inputInput } = this.#sums;
    const { first: seen, inputFirst: inputSeen } = this.#first();
    // If the backend has just become smaller, requests wait in a dip as well: no more than twice of what was known is believed.
    const known = count * this.#base + input * this.#baseOfToken;
    const believed = known > 0 ? Math.min(1, (2 * known) / Math.max(seen, known)) : 1;
    const [first, inputFirst] = [seen * believed, inputSeen * believed];
    const spread = count * inputInput - input * input;
    const slope = spread > 0 ? (count * inputFirst - input * first) / spread : 0;
    // No first token takes less than none, and none takes less with more input.
    this.#baseOfToken = Math.min(Math.max(0, slope), input > 0 ? Math.max(0, first) / input : 0);
    this.#base = Math.max(0, (first - input * this.#baseOfToken) / count);
  }

  clear(): void {
    this.#sums = newSums();
  }

  /**
   * Time until the first token of all requests. Of a plain answer it is what does not depend on how much was written: the duration
   * without output tokens times the time for one, which is the slope of the durations over the output tokens.
   */
  #first(): { first: number; inputFirst: number } {
    const sums = this.#sums;
    if (this.#isStream) return sums;
    const { count, input, output, whole } = sums;
    const { inputs, outputs, both } = this.#spread();
    const outputWhole = count * sums.outputWhole - output * whole;
    const inputWhole = count * sums.inputWhole - input * whole;
    // Inputs that are all of one length explain nothing.
    const perToken =
      inputs > 0
        ? (inputs * outputWhole - both * inputWhole) / (inputs * outputs - both * both)
        : outputWhole / outputs;
    return { first: whole - perToken * output, inputFirst: sums.inputWhole - perToken * sums.inputOutput };
  }

  #spread(): { inputs: number; outputs: number; both: number } {
    const { count, input, output, inputInput, outputOutput, inputOutput } = this.#sums;
    return {
      inputs: count * inputInput - input * input,
      outputs: count * outputOutput - output * output,
      both: count * inputOutput - input * output,
    };
  }
}

function newSums() {
  return {
    ...{ count: 0, input: 0, inputInput: 0, whole: 0, inputWhole: 0, first: 0, inputFirst: 0 },
    ...{ output: 0, outputOutput: 0, outputWhole: 0, inputOutput: 0 },
  };
}
