// When requests at one backend have ended, as far back as it matters.

export class Ends {
  /** Clock milliseconds, oldest first. */
  readonly #times: number[] = [];
  #forgotten = 0;

  /** All of them. */
  get count(): number {
    return this.#forgotten + this.#times.length;
  }

  /** @param remembered - of the latest ones, at least */
  add(nowMs: number, remembered: number): void {
    const times = this.#times;
    times.push(nowMs);
    if (times.length < 2 * remembered) return;
    const forgotten = times.length - remembered;
    times.splice(0, forgotten);
    this.#forgotten += forgotten;
  }

  /** How many of all were before this moment; undefined where that is forgotten. */
  before(timeMs: number): number | undefined {
    const times = this.#times;
    let from = 0;
    let to = times.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((times[middle] as number) < timeMs) from = middle + 1;
      else to = middle;
    }
    return from === 0 && this.#forgotten > 0 ? undefined : this.#forgotten + from;
  }
}
