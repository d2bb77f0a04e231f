// Leaves a server alone that does not answer: after a failure it is not asked for a while, then one caller tries, and only
// when that works do all callers ask again. Pure: the time comes in as an argument.

import { backoffDelayMs } from "./backoff.ts";

const POLICY = { baseDelayMs: 1_000, maxDelayMs: 30_000, multiplier: 2, jitter: true };

/** How to use the server: as usual, for one trial whether it works again, or not at all. */
type Leave = "usual" | "trial" | "none";

export class Pause {
  readonly #random: () => number;
  readonly #changed: (isUp: boolean, reason: string) => void;
  #failures = 0;
  #endsMs = 0;
  #isTrying = false;

  /** @param changed - told when it stops working, with the reason, and when it works again */
  constructor(changed: (isUp: boolean, reason: string) => void, random: () => number = Math.random) {
    this.#changed = changed;
    this.#random = random;
  }

  get isUp(): boolean {
    return this.#failures === 0;
  }

  /** The time from which a trial may be made. */
  get endsMs(): number {
    return this.#endsMs;
  }

  /** A caller that gets "trial" must report how it went. */
  leave(nowMs: number): Leave {
    if (this.#failures === 0) return "usual";
    if (this.#isTrying || nowMs < this.#endsMs) return "none";
    this.#isTrying = true;
    return "trial";
  }

  succeeded(): void {
    this.#isTrying = false;
    if (this.#failures === 0) return;
    this.#failures = 0;
    this.#changed(true, "");
  }

  failed(nowMs: number, reason: string): void {
    // Of many that failed together, one counts.
    if (this.#failures > 0 && !this.#isTrying) return;
    this.#isTrying = false;
    this.#failures++;
    this.#endsMs = nowMs + backoffDelayMs(POLICY, this.#failures, this.#random);
    if (this.#failures === 1) this.#changed(false, reason);
  }
}
