// How many requests a backend can have at once before they wait for each other there, found by how its latency changes.

import type { SlotEnd } from "./admission.ts";

const FIRST_LIMIT = 8;
const MOST = 1_024;
/** Samples after which the limit is judged; with a higher limit as many as that. */
const LEAST_SAMPLES = 32;
/** Fewer of a kind say nothing. */
const LEAST_OF_KIND = 8;
/** The limit is used if so much of it is. */
const IN_USE = 0.8;

/** For one window less is sent than what the backend can do, to see how long a first token takes while no requests wait. */
const DIP = 0.8;
/** In the next one more is sent, to see how many of the requests wait then. Where so few do, still more is sent. */
const EXACT = { probe: 1.01, fewWait: 0.03 };
const ROUGH = { probe: 1.25, fewWait: 0.05 };
/** Streams tell exactly what waits if their first tokens take no more of the time than this without a queue. */
const SHORT_FIRST = 0.04;
const GROWTH = 1.5;
/** Windows until the next dip: at first, and after each probe that found the same twice as many. */
const LEAST_PERIOD = 8;
const MOST_PERIOD = 64;
const SAME = 0.04;
/** Between two probes the backend is found to do less if so many wait; with a limit that is not used, so many. */
const MANY_WAIT = 0.15;
const MOST_WAIT = 0.5;
/** Of what the backend can do, so much is sent: not more, because those would wait there, out of the fair order. */
const OF_EXACT = 0.975;
/** Plain answers tell less exactly: so many probes come one after the other. */
const ROUGH_PROBES = 24;
const AFTER_OVERLOAD = 0.8;
/** Less than this part of a request is left out of the limit: one too few costs a small engine more than one too many does. */
const ROUNDED_DOWN = 0.2;

/** Where only the throughput tells: what more requests at once must be worth, and the steps up and down. */
const LEAST_GAIN = 0.2;
const STEP_UP = 1.3;
const STEP_DOWN = 1.2;
const PERIOD_UP = 2;
/** Square of the least variation, by the mean, of the lengths of plain answers that tells how long one of their tokens takes. */
const LEAST_VARIATION = 0.04;
/** The same of how much longer inputs come with longer answers. */
const MOST_CORRELATION = 0.95;

/**
 * The idea is that of the gradient limits of Netflix' concurrency-limits (`Gradient2Limit`:
 * https://github.com/Netflix/concurrency-limits) and of Envoy
 * (https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/adaptive_concurrency_filter): the limit becomes
 * `gradient * limit`, where the gradient says how much faster an answer is without a queue, and what is fast is measured from
 * time to time with fewer requests. An engine with continuous batching needs another gradient, because its answers become slower
 * long before its batch is full. What shows that the batch is full is the wait for the first token, and by Little's law its part
 * of the whole duration is the part of the requests that wait:
 * `gradient = 1 - (time to first token - time to first token without a queue) / duration`.
 * So `gradient * requests in flight` is what the engine works at, which is the size of its batch where requests wait.
 *
 * Plain answers of different lengths show the time to their first token in what does not depend on the length. Where all have the
 * same length, or none as embeddings have, only the throughput tells: more requests at once must be worth it.
 */
export class AdaptiveLimit {
  /** Requests that the backend works at when it has enough. */
  #capacity = FIRST_LIMIT;
  #margin = 1;
  #phase: "hold" | "dip" | "probe" = "hold";
  #limit = FIRST_LIMIT;
  #period = LEAST_PERIOD;
  #windowsToDip = 2;
  /** Since the last dip. */
  #probes = 0;
  /** What was seen before the dip. */
  #before = { inFlight: 0, throughput: 0 };
  /** Ends of requests that were sent with the limit before. */
  #stale = 0;
  #samples = 0;
  #inFlight = 0;
  readonly #plain = new Kind(false);
  readonly #streams = new Kind(true);

  /** At least 1. */
  get limit(): number {
    return this.#limit;
  }

  /** @param inFlight - with the request that ends */
  sample(end: SlotEnd, inFlight: number): void {
    if (this.#stale > 0) {
      this.#stale--;
      return;
    }
    if (end.isOverload) {
      this.#capacity = Math.min(this.#capacity, inFlight) * AFTER_OVERLOAD;
      this.#hold(LEAST_PERIOD, inFlight);
      return;
    }
    // A request that was not answered shows nothing of how long answers take.
    if (end.firstByteMs === undefined) return;
    (end.stream ? this.#streams : this.#plain).add(end);
    this.#inFlight += inFlight;
    this.#samples++;
    if (this.#samples >= Math.max(LEAST_SAMPLES, this.#limit)) this.#judge(this.#inFlight / this.#samples);
  }

  #judge(inFlight: number): void {
    const kind = [this.#streams, this.#plain].find((one) => one.isTelling);
    const waiting = kind?.partThatWaits() ?? 0;
    const isInUse = inFlight >= IN_USE * this.#limit;
    const isExact = kind === this.#streams && kind.partOfBase() < SHORT_FIRST;
    const { probe, fewWait } = isExact ? EXACT : ROUGH;
    if (this.#phase === "dip") {
      this.#probes = 0;
      this.#plain.learn();
      this.#streams.learn();
      if (kind !== undefined) this.#enter("probe", probe * this.#capacity + 1, inFlight);
      else this.#compare(inFlight);
    } else if (this.#phase === "probe" && isInUse && kind !== undefined) {
      const before = this.#capacity;
      this.#capacity = Math.min(MOST, inFlight * (1 - waiting));
      const isSame = Math.abs(this.#capacity - before) <= SAME * before + 0.25;
      this.#margin = isExact ? OF_EXACT : probe;
      const doNotWait = waiting < Math.min(fewWait, (1 - before / inFlight) / 2);
      if (doNotWait && this.#limit < MOST) this.#enter("probe", GROWTH * this.#capacity, inFlight);
      else if (isExact) this.#hold(isSame ? Math.min(MOST_PERIOD, 2 * this.#period) : LEAST_PERIOD, inFlight);
      else if (++this.#probes >= ROUGH_PROBES) this.#hold(1, inFlight);
      else this.#enter("probe", probe * this.#capacity + 1, inFlight);
    } else if (this.#phase === "probe") this.#hold(LEAST_PERIOD, inFlight);
    else if (isInUse && --this.#windowsToDip <= 0) {
      this.#before = { inFlight, throughput: this.#throughput(inFlight) };
      this.#enter("dip", DIP * this.#capacity, inFlight);
    } else if (waiting > (isInUse ? MANY_WAIT : MOST_WAIT)) {
      this.#capacity = inFlight * (1 - waiting);
      this.#hold(1, inFlight);
    } else this.#begin();
  }

  /** After a dip in which nothing but the throughput tells. */
  #compare(inFlight: number): void {
    const { inFlight: more, throughput } = this.#before;
    const gain = more > inFlight ? Math.log(throughput / this.#throughput(inFlight)) / Math.log(more / inFlight) : 1;
    const isWorthIt = gain >= LEAST_GAIN;
    this.#margin = 1;
    this.#capacity = isWorthIt ? Math.min(MOST, this.#capacity * STEP_UP) : this.#capacity / STEP_DOWN;
    this.#hold(isWorthIt ? PERIOD_UP : LEAST_PERIOD, inFlight);
  }

  #hold(period: number, inFlight: number): void {
    this.#capacity = Math.max(1, this.#capacity);
    this.#period = Math.max(LEAST_PERIOD, period);
    this.#windowsToDip = period;
    this.#enter("hold", this.#margin * this.#capacity, inFlight);
  }

  /** What ends in the meantime was sent with the limit before, and says too late how that was. */
  #enter(phase: "hold" | "dip" | "probe", limit: number, inFlight: number): void {
    this.#phase = phase;
    this.#limit = Math.min(MOST, Math.max(1, Math.ceil(limit - ROUNDED_DOWN)));
    this.#stale = Math.floor(inFlight * (phase === "probe" ? 2 : 1)) - 1;
    this.#begin();
  }

  /** Tokens in a millisecond, by Little's law. */
  #throughput(inFlight: number): number {
    const [plain, streams] = [this.#plain, this.#streams];
    return (inFlight * (plain.tokens + streams.tokens)) / (plain.wholeMs + streams.wholeMs);
  }

  /** A new window. */
  #begin(): void {
    this.#samples = 0;
    this.#inFlight = 0;
    this.#plain.clear();
    this.#streams.clear();
  }
}

/** Streams, or plain answers: what was seen of them in a window, and how long a first token takes without a queue. */
class Kind {
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
    if (count < LEAST_OF_KIND) return false;
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
