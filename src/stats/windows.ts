// The sums of requests, over all time and over windows.

import { RING_COUNT, type RingPosition, type WindowSlot } from "../lib/time-rings.ts";
import { type SlotCheck, WindowedNumbers } from "./windowed-numbers.ts";

const FIELDS = 8;
/** Files of earlier versions: without `refused`, which was a part of `failed` or of nothing. */
const FIELDS_WITHOUT_REFUSED = 7;
/** Those before: also without `succeeded`, and with the latency of failures in the sum. */
const EARLIEST_FIELDS = 6;

export interface Sums {
  requests: number;
  failed: number;
  refused: number;
  /** Those whose latency is in the sum. */
  succeeded: number;
  latencyMs: number;
  promptTokens: number;
  completionTokens: number;
  /** Time of the requests whose completion tokens are counted. */
  generatingMs: number;
}

/** Of the requests that the gateway and its backends had to do: what was refused, and what clients gave up, is neither. */
export function failureShare({ failed, succeeded }: Pick<Sums, "failed" | "succeeded">): number {
  return failed === 0 ? 0 : failed / (failed + succeeded);
}

/** Of those that succeeded: a refusal is quick, and a timeout says nothing of the model. In hundredths. */
export function averageLatency({ latencyMs, succeeded }: Sums): number {
  return succeeded === 0 ? 0 : Math.round((latencyMs / succeeded) * 100) / 100;
}

export class WindowedSums extends WindowedNumbers<Float64Array> {
  constructor() {
    super(FIELDS, Float64Array);
  }

  add(
    position: RingPosition,
    requests: number,
    failed: number,
    refused: number,
    succeeded: number,
    latencyMs: number,
    promptTokens: number,
    completionTokens: number,
    generatingMs: number,
  ): void {
    this.forgetOld(position);
    for (let ring = 0; ring <= RING_COUNT; ring++) {
      const values = ring === RING_COUNT ? this.allTime : this.values;
      const base = ring === RING_COUNT ? 0 : position.slots[ring]! * FIELDS;
      values[base]! += requests;
      values[base + 1]! += failed;
      values[base + 2]! += latencyMs;
      values[base + 3]! += promptTokens;
      values[base + 4]! += completionTokens;
      values[base + 5]! += generatingMs;
      values[base + 6]! += succeeded;
      values[base + 7]! += refused;
    }
  }

  /** Undefined: all time. */
  sum(window: readonly WindowSlot[] | undefined): Sums {
    const [requests, failed, latencyMs, promptTokens, completionTokens, generatingMs, succeeded, refused] = this.sums(
      window,
    ) as unknown as [number, number, number, number, number, number, number, number];
    return { requests, failed, refused, succeeded, latencyMs, promptTokens, completionTokens, generatingMs };
  }

  /** The sums in their order in a block. */
  write(): number[][] {
    return this.writeBlocks((block) => Array.from(block, rounded));
  }

  restore(written: readonly (readonly number[])[], isSlot: SlotCheck): void {
    this.restoreBlocks(written, isSlot, (numbers, block) => {
      if (numbers.length === EARLIEST_FIELDS) addSucceeded(numbers);
      if (numbers.length === FIELDS_WITHOUT_REFUSED) numbers.push(0);
      if (numbers.length === FIELDS) block.set(numbers);
    });
  }
}

/** Keeps the average as it was. */
function addSucceeded(numbers: number[]): void {
  const [requests = 0, failed = 0, latencyMs = 0] = numbers;
  const succeeded = requests - failed;
  numbers[2] = requests === 0 ? 0 : (latencyMs * succeeded) / requests;
  numbers.push(succeeded);
}

/** Microseconds are enough, and make the file half as long. */
function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}
