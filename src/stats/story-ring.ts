// The latest stories, bounded in number and bytes. The steps of old stories are forgotten before the stories are.

/** The members of a story that the ring reads. */
interface Kept {
  readonly bytes: number;
  /** The bytes that the ring has counted for this story. */
  weighedBytes: number;
  readonly isOver: boolean;
  outline(): void;
}

/** The share of stories that may be without their steps: with longer ids there are fewer stories, but not only outlines. */
const MAX_OUTLINED = 0.9;

export class StoryRing<Story extends Kept> {
  readonly #maxBytes: number;
  /** Around the end; searched only on demand, so that a request pays for no index. */
  readonly #ring: (Story | undefined)[];
  #oldest = 0;
  #count = 0;
  /** So many of the oldest were looked at for their steps. */
  #outlined = 0;
  #bytes = 0;

  constructor(maxEntries: number, maxBytes = Number.POSITIVE_INFINITY) {
    this.#maxBytes = maxBytes;
    this.#ring = new Array<Story | undefined>(maxEntries).fill(undefined);
  }

  get size(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(story: Story): void {
    if (this.#count === this.#ring.length) this.#forgetOldest();
    this.#ring[this.#place(this.#count)] = story;
    this.#count++;
    this.#weigh(story);
  }

  /** Counts what the story has become; nothing for one that was forgotten while its request ran. */
  weigh(story: Story): void {
    if (story.weighedBytes > 0) this.#weigh(story);
  }

  /** Looks from the newest on, where stories stand that end soon after they began. */
  remove(story: Story): void {
    if (story.weighedBytes === 0) return;
    let index = this.#count - 1;
    while (index >= 0 && this.#ring[this.#place(index)] !== story) index--;
    if (index < 0) return;
    for (let later = index + 1; later < this.#count; later++) {
      this.#ring[this.#place(later - 1)] = this.#ring[this.#place(later)];
    }
    this.#count--;
    this.#ring[this.#place(this.#count)] = undefined;
    if (index < this.#outlined) this.#outlined--;
    this.#forgetWeight(story);
  }

  *newestFirst(): Generator<Story> {
    for (let index = this.#count - 1; index >= 0; index--) yield this.#ring[this.#place(index)] as Story;
  }

  /** `index`: 0 is the oldest. */
  #place(index: number): number {
    return (this.#oldest + index) % this.#ring.length;
  }

  #weigh(story: Story): void {
    const { bytes } = story;
    this.#bytes += bytes - story.weighedBytes;
    story.weighedBytes = bytes;
    while (this.#bytes > this.#maxBytes && this.#count > 1) {
      if (this.#outlined + 1 <= this.#count * MAX_OUTLINED) this.#outlineNext();
      else this.#forgetOldest();
    }
  }

  /** A request that runs keeps its steps: they are few, and show where it hangs. */
  #outlineNext(): void {
    const story = this.#ring[this.#place(this.#outlined)] as Story;
    this.#outlined++;
    if (!story.isOver) return;
    story.outline();
    const { bytes } = story;
    this.#bytes += bytes - story.weighedBytes;
    story.weighedBytes = bytes;
  }

  #forgetOldest(): void {
    const story = this.#ring[this.#oldest] as Story;
    this.#ring[this.#oldest] = undefined;
    this.#oldest = this.#place(1);
    this.#count--;
    if (this.#outlined > 0) this.#outlined--;
    this.#forgetWeight(story);
  }

  #forgetWeight(story: Story): void {
    this.#bytes -= story.weighedBytes;
    story.weighedBytes = 0;
  }
}
