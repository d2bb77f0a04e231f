// How many requests a backend can have at once before they wait for each other there, found by when its answers begin.

import type { SlotEnd } from "./admission.ts";
import { Ends } from "./ends.ts";
import { FirstTokenTimes } from "./first-token-times.ts";

const FIRST_LIMIT = 8;
const MOST = 1_024;
/** Samples after which the limit is judged; with a higher limit as many as that. */
const LEAST_SAMPLES = 32;
/** The limit is used if so much of it is. */
const IN_USE = 0.8;

/** A limit is proved by so many of the streams that it allows as the last ones, and by no fewer streams than these. */
const PROVING = 0.1;
const LEAST_PROVING = 8;
/** Requests more than the limit in a trial: with a single one, an end by chance hides too often that it fits. */
const LEAST_STEP = 2;
/** Requests that are sent within this time are sent together. */
const MOMENT_MS = 5;
/** Tokens and ends that come within this time come from the same step of the engine. */
const SAME_STEP_MS = 2;
/** Where a limit is not proved, the backend is found to do less if so many wait. */
const SOME_WAIT = 0.03;
/** Remembered for each request that the limit allows: long answers see so many others end. */
const ENDS = 4;

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

/** What a request met when it was sent. */
export interface SentAs {
  /** With itself. */
  inFlight: number;
  /** Requests that had ended before. */
  ended: number;
  moment: Moment;
}

/** Requests that were sent together: which of them the engine took first is not known. */
interface Moment {
  untilMs: number;
  /** Of the first one. */
  inFlight: number;
  ended: number;
  /** Requests in flight with the last one. */
  last: number;
  /** Of those that are over: how many had ended before their first tokens, ascending. */
  endedThen: number[];
}

/**
 * What shows that the batch of an engine is full is the wait for the first token: a request beyond it gets none before another one
 * ends. So a stream that was sent as the n-th in flight, and before whose first token k others ended, shows an engine that works at
 * n - k requests or more. A limit is proved while some of the streams that it allows as the last ones show as many. While it is
 * proved, two requests more are tried from time to time, and the limit becomes what the trial shows; a trial that fails has kept
 * these waiting until the next ends, and no others. When a limit is not proved any more, and first tokens come later, the limit
 * becomes what nearly all of its streams show.
 *
 * Where first tokens take long without a queue as well, or no answer is a stream, this says nothing. Then the idea is that of the
 * gradient limits of Netflix' concurrency-limits (`Gradient2Limit`: https://github.com/Netflix/concurrency-limits) and of Envoy
 * (https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/adaptive_concurrency_filter): the limit becomes
 * `gradient * limit`, where the gradient says how much faster an answer is without a queue, and what is fast is measured from
 * time to time with fewer requests. An engine with continuous batching needs another gradient, because its answers become slower
 * long before its batch is full. By Little's law the part of the wait for the first token in the whole duration is the part of the
 * requests that wait: `gradient = 1 - (time to first token - time to first token without a queue) / duration`.
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
  /** The limit that was proved last, or to which it was lowered; 0: none since the last dip. */
  #proved = 0;
  /** A trial: so many requests more may be sent, once. */
  #trial = 0;
  #step = LEAST_STEP;
  #period = 1;
  /** Windows until the next trial, or the next dip where the limit is not proved. */
  #windowsLeft = 2;
  /** Since the last dip. */
  #probes = 0;
  /** What was seen before the dip. */
  #before = { inFlight: 0, throughput: 0 };
  /** Ends of requests that were sent with the limit before. */
  #stale = 0;
  /** Requests that had ended when this phase began. */
  #since = 0;
  #samples = 0;
  #inFlight = 0;
  /** In this window, by streams that were sent as the last one that the limit allows. */
  #places: number[] = [];
  #moment: Moment | undefined;
  readonly #ends = new Ends();
  readonly #plain = new FirstTokenTimes(false);
  readonly #streams = new FirstTokenTimes(true);

  /** At least 1. */
  get limit(): number {
    return this.#limit + this.#trial;
  }

  /**
   * A request is sent.
   *
   * @param inFlight - with this one
   */
  begin(inFlight: number, nowMs: number): SentAs {
    if (inFlight >= this.limit) this.#trial = 0;
    const ended = this.#ends.count;
    if (this.#moment === undefined || nowMs > this.#moment.untilMs) {
      this.#moment = { untilMs: nowMs + MOMENT_MS, inFlight, ended, last: inFlight, endedThen: [] };
    }
    this.#moment.last = inFlight;
    return { inFlight, ended, moment: this.#moment };
  }

  /**
   * @param sent - what `begin` said of the request that ends
   * @param end - undefined: it was not sent after all
   * @param inFlight - with the request that ends
   */
  ended(sent: SentAs, end: SlotEnd | undefined, inFlight: number, nowMs: number): void {
    const endedThen = end && this.#endedAtFirstToken(end, nowMs);
    this.#ends.add(nowMs, ENDS * this.#limit);
    if (end === undefined) return;
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
    const isOfPhase = sent.ended >= this.#since;
    // What waited before a dip says nothing of how long a first token takes without a queue.
    if (this.#phase === "dip" && end.stream && !isOfPhase) return;
    if (endedThen !== undefined && this.#phase === "hold" && isOfPhase) {
      if (sent.inFlight === this.#limit) this.#places.push(sent.inFlight - Math.max(0, endedThen - sent.ended));
      if (sent.moment.last > this.#limit) this.#raise(placesOf(sent.moment, endedThen));
      // Those of a trial wait where others do not.
      if (sent.inFlight > this.#limit) return;
    }
    (end.stream ? this.#streams : this.#plain).add(end);
    this.#inFlight += inFlight;
    this.#samples++;
    if (this.#samples >= Math.max(LEAST_SAMPLES, this.#limit)) this.#judge(this.#inFlight / this.#samples);
  }

  /** How many requests had ended when this one got its first token; undefined where that is not known. */
  #endedAtFirstToken({ stream, firstByteMs, durationMs }: SlotEnd, nowMs: number): number | undefined {
    if (!stream || firstByteMs === undefined) return undefined;
    return this.#ends.before(nowMs - Math.max(0, durationMs - firstByteMs) - SAME_STEP_MS);
  }

  /** A trial has shown so many places. */
  #raise(places: number): void {
    if (places <= this.#limit) return;
    this.#limit = Math.min(MOST, places);
    this.#trial = 0;
    this.#begin();
  }

  /** Judges the limit by what streams have shown; false where they do not say whether requests wait. */
  #judgeByPlaces(waiting: number, inFlight: number): boolean {
    const all = this.#places.toSorted((one, other) => other - one);
    if (all.length < LEAST_PROVING) return false;
    const limit = this.#limit;
    const places = all[Math.floor(PROVING * all.length)] as number;
    const hasGrown = limit > this.#proved && this.#proved > 0;
    if (places < limit) {
      const fewWait = hasGrown ? (1 - this.#proved / limit) / 2 : Math.max(SOME_WAIT, (1 - places / limit) / 2);
      if (waiting < fewWait) return false;
      this.#capacity = Math.max(hasGrown ? this.#proved : 1, places);
      this.#proved = this.#capacity;
      this.#enter("hold", this.#capacity, inFlight);
      return true;
    }
    // In its first window a limit may have begun with many requests at the same moment.
    const isUnknown = this.#streams.partOfBase() === 0;
    if (this.#proved === limit && (isUnknown || waiting < SOME_WAIT)) this.#streams.learn();
    this.#proved = limit;
    this.#capacity = limit;
    this.#margin = 1;
    if (--this.#windowsLeft <= 0 || hasGrown) {
      this.#step = this.#nextStep(hasGrown, all);
      this.#trial = Math.min(MOST - limit, this.#step);
      this.#period = hasGrown ? 1 : Math.min(LEAST_PERIOD, 2 * this.#period);
      this.#windowsLeft = this.#period;
    }
    this.#begin();
    return true;
  }

  /** Requests of the next trial: few, unless the last one has shown that more fit. */
  #nextStep(hasGrown: boolean, places: readonly number[]): number {
    const limit = this.#limit;
    // At least two of those that are sent together have to be streams, or they do not show whether both fit.
    const forStreams = Math.ceil((2 * this.#samples) / places.length) - 1;
    // Where it takes long to read inputs, some requests end before the first token of one that did not wait.
    const ends = limit - places.reduce((sum, one) => sum + one, 0) / places.length;
    const forEnds = Math.min(1 + Math.floor(2 * ends), limit >> 3);
    return Math.max(forStreams, forEnds, hasGrown ? Math.min(2 * this.#step, limit >> 1) : LEAST_STEP);
  }

  #judge(inFlight: number): void {
    const kind = [this.#streams, this.#plain].find((one) => one.isTelling);
    const waiting = kind?.partThatWaits() ?? 0;
    const isInUse = inFlight >= IN_USE * this.#limit;
    const isExact = kind === this.#streams && kind.partOfBase() < SHORT_FIRST;
    const { probe, fewWait } = isExact ? EXACT : ROUGH;
    if (this.#phase === "hold" && isInUse && isExact && this.#judgeByPlaces(waiting, inFlight)) return;
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
    else if (isInUse && --this.#windowsLeft <= 0) {
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
    this.#windowsLeft = period;
    this.#proved = 0;
    this.#enter("hold", this.#margin * this.#capacity, inFlight);
  }

  /** What ends in the meantime was sent with the limit before, and says too late how that was. */
  #enter(phase: "hold" | "dip" | "probe", limit: number, inFlight: number): void {
    this.#phase = phase;
    this.#limit = Math.min(MOST, Math.max(1, Math.ceil(limit - ROUNDED_DOWN)));
    this.#stale = Math.floor(inFlight * (phase === "probe" ? 2 : 1)) - 1;
    this.#since = this.#ends.count;
    this.#trial = 0;
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
    this.#places = [];
    this.#plain.clear();
    this.#streams.clear();
  }
}

/** Adds a request of a moment that is over. Gives how many requests the backend works at, by those that are. */
function placesOf({ inFlight, ended, endedThen }: Moment, then: number): number {
  endedThen.push(Math.max(ended, then));
  endedThen.sort((one, other) => one - other);
  return endedThen.reduce((most, each, index) => Math.max(most, inFlight + index - (each - ended)), 0);
}
