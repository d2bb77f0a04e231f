// Events of one engine that wait for the index: in order, bounded. When more come than the index takes, the oldest go.

export class EventQueue<Event> {
  readonly #ring: (Event | undefined)[];
  #oldest = 0;
  #count = 0;
  /** Number of events that were lost. */
  dropped = 0;

  constructor(capacity: number) {
    this.#ring = new Array<Event | undefined>(capacity).fill(undefined);
  }

  get size(): number {
    return this.#count;
  }

  add(event: Event): void {
    if (this.#count === this.#ring.length) {
      this.take();
      this.dropped++;
    }
    this.#ring[(this.#oldest + this.#count) % this.#ring.length] = event;
    this.#count++;
  }

  /** The oldest; undefined where nothing waits. */
  take(): Event | undefined {
    if (this.#count === 0) return undefined;
    const event = this.#ring[this.#oldest];
    this.#ring[this.#oldest] = undefined;
    this.#oldest = (this.#oldest + 1) % this.#ring.length;
    this.#count--;
    return event;
  }
}
