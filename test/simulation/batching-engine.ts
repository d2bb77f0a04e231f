// An inference engine with continuous batching and chunked prefill, first come first served, by a clock that may be virtual.

import type { Clock } from "./virtual-time.ts";

export interface EngineShape {
  /** Requests in a batch; further ones wait in the engine. */
  slots: number;
  /** A step of an empty batch. */
  stepMs: number;
  /** What each answer that is being written adds to a step. */
  sequenceMs: number;
  /** What each token of input adds to the step that reads it. */
  inputTokenMs: number;
  /** Tokens of input that a step reads at most. */
  chunkTokens: number;
}

export interface EngineRequest {
  inputTokens: number;
  outputTokens: number;
  /** Output so far. */
  tokens: number;
  firstToken?(): void;
  /** Each of them. */
  token?(): void;
  done(): void;
}

export class BatchingEngine {
  /** Answers of all requests, in tokens. */
  inputTokens = 0;
  outputTokens = 0;
  shape: EngineShape;
  readonly #time: Clock;
  readonly #waiting: EngineRequest[] = [];
  readonly #running: { request: EngineRequest; unread: number }[] = [];
  #isStepping = false;

  constructor(time: Clock, shape: EngineShape) {
    this.#time = time;
    this.shape = shape;
  }

  get inFlight(): number {
    return this.#waiting.length + this.#running.length;
  }

  submit(request: EngineRequest): void {
    this.#waiting.push(request);
    if (!this.#isStepping) this.#step();
  }

  /** Its client has left. */
  cancel(request: EngineRequest): void {
    const waiting = this.#waiting.indexOf(request);
    if (waiting >= 0) this.#waiting.splice(waiting, 1);
    const running = this.#running.findIndex((one) => one.request === request);
    if (running >= 0) this.#running.splice(running, 1);
  }

  #step(): void {
    const { slots, stepMs, sequenceMs, inputTokenMs, chunkTokens } = this.shape;
    while (this.#waiting.length > 0 && this.#running.length < slots) {
      const request = this.#waiting.shift() as EngineRequest;
      this.#running.push({ request, unread: request.inputTokens });
    }
    this.#isStepping = this.#running.length > 0;
    if (!this.#isStepping) return;
    let read = 0;
    let writing = 0;
    for (const one of this.#running) {
      if (one.unread === 0) writing++;
      else {
        const chunk = Math.min(one.unread, chunkTokens - read);
        read += chunk;
        one.unread -= chunk;
      }
    }
    this.inputTokens += read;
    this.#time.schedule(stepMs + writing * sequenceMs + read * inputTokenMs, () => this.#end());
  }

  /** Every request whose input is read has one more token. */
  #end(): void {
    const running = this.#running;
    let kept = 0;
    const over: EngineRequest[] = [];
    for (const one of running) {
      const { request } = one;
      if (one.unread === 0) {
        this.outputTokens++;
        if (++request.tokens === 1) request.firstToken?.();
        request.token?.();
      }
      if (request.tokens >= request.outputTokens) over.push(request);
      else running[kept++] = one;
    }
    running.length = kept;
    this.#isStepping = true;
    for (const request of over) request.done();
    this.#step();
  }
}
