// Which prefix hash is held by which backend: a hash table in plain numbers, so that a hundred thousand entries are one
// block of memory that the garbage collector never looks into. Memory is bounded by the number of entries, whatever is put
// in. While there is room, a backend has as many entries as it likes; when the table is full, the backend with the most
// gives up the one that it did not renew for longest, so that none loses a part of its equal share to another.

/** Words of an entry; 0 stands for no entry, so that the first one is never used. */
const LOW = 0;
const HIGH = 1;
const NEXT = 2; // in its bucket; of a free entry: the next free one
const OLDER = 3;
const NEWER = 4;
const OWNER = 5; // slot of the backend, and flags
const SECONDS = 6; // when it was renewed
const PARENT = 7; // the entry of the block before it
const PARENT_LOW = 8; // its hash, because the entry may be another one by now
const CHILDREN = 9;
const WORDS = 10;

/** Words of a slot: how many entries it has, and both ends of their order of renewal. */
const COUNT = 0;
const OLDEST = 1;
const NEWEST = 2;
const SLOT_WORDS = 3;
const FIRST_SLOTS = 16;

const SLOT_MASK = 0xffff;
const WARM = 0x1_0000;
const NAMED = 0x2_0000;
const IN_USE = 0x4_0000;
const LEARNT = 0x8_0000;

export const MAX_SLOTS = SLOT_MASK;
/** Memory of one entry; the buckets are a part of it. */
export const BYTES_PER_ENTRY = WORDS * 4 + 8;
const FIRST_CAPACITY = 1024;

/** The blocks of one prompt that backends hold, by the backend's slot. */
export interface Overlap {
  /** Blocks from the beginning that it holds: without a gap, or because it has claimed the last of them. */
  readonly matched: Int32Array;
  /** How many of them, from the beginning, it has read in answered requests. Not filled in where no backend claims more. */
  readonly learnt: Int32Array;
  /** How many of them are not in its GPU. */
  readonly warm: Int32Array;
}

/** All of a table, as another process can take it over. */
export interface TableImage {
  words: Uint32Array;
  capacity: number;
  free: number;
  used: number;
  size: number;
  named: number;
  factors: [low: number, high: number];
  slots: Uint32Array;
}

export class PrefixTable {
  #words: Uint32Array;
  #heads: Uint32Array;
  #shift: number;
  #capacity: number;
  readonly #maxEntries: number;
  /** Secret, so that clients cannot make prompts that all end in one bucket. */
  #lowFactor: number;
  #highFactor: number;
  #free = 0;
  #used = 0; // entries that were ever handed out
  #size = 0;
  #named = 0; // entries that backends have claimed
  #slots = new Uint32Array(FIRST_SLOTS * SLOT_WORDS);
  #most = 0; // the slot with the most entries, as long as it has no fewer than:
  #others = 0; // no other slot has more
  #expiredSeconds = 0; // nothing is older

  constructor(maxEntries: number, random: () => number) {
    this.#maxEntries = maxEntries;
    this.#capacity = Math.min(maxEntries, FIRST_CAPACITY);
    this.#words = new Uint32Array((this.#capacity + 1) * WORDS);
    this.#lowFactor = Math.floor(random() * 2 ** 32) | 1;
    this.#highFactor = Math.floor(random() * 2 ** 32) | 1;
    [this.#heads, this.#shift] = newHeads(this.#capacity);
  }

  get size(): number {
    return this.#size;
  }

  /** True if any backend has claimed blocks. */
  get hasClaims(): boolean {
    return this.#named > 0;
  }

  get bytes(): number {
    return this.#words.byteLength + this.#heads.byteLength;
  }

  entriesOf(slot: number): number {
    return this.#slots[slot * SLOT_WORDS + COUNT] ?? 0;
  }

  /** The entry of a hash at a backend; 0 where there is none. */
  find(low: number, high: number, slot: number): number {
    const words = this.#words;
    let entry = this.#heads[this.#bucket(low, high)] as number;
    while (entry !== 0) {
      const at = entry * WORDS;
      if (
        words[at + LOW] === low &&
        words[at + HIGH] === high &&
        ((words[at + OWNER] as number) & SLOT_MASK) === slot
      ) {
        return entry;
      }
      entry = words[at + NEXT] as number;
    }
    return 0;
  }

  /**
   * The backend holds all blocks of a chain (two words per block) in its GPU, or it no longer says so. The first block
   * counts as renewed last: whatever is deeper goes before it. What is beyond the backend's share is left out.
   */
  learn(chain: Uint32Array, slot: number, seconds: number): void {
    let parent = 0;
    for (let word = 0; word < chain.length; word += 2) {
      const entry = this.#findOrAdd(chain[word] as number, chain[word + 1] as number, slot, parent);
      if (entry === 0) return;
      if (entry === parent) continue; // a block was crafted whose hash is its own seed
      this.#adopt(parent, entry);
      const owner = this.#words[entry * WORDS + OWNER] as number;
      this.#words[entry * WORDS + OWNER] = (owner & ~WARM) | LEARNT;
      this.#words[entry * WORDS + SECONDS] = seconds;
      if (parent === 0) this.#moveToNewest(entry);
      else this.#moveBehind(entry, parent);
      parent = entry;
    }
  }

  /** A backend tells of a hash: it holds it, and, as far as they are known, the blocks before it. */
  confirm(low: number, high: number, slot: number, seconds: number, isWarm: boolean): void {
    let entry = this.#findOrAdd(low, high, slot);
    this.#name(entry);
    // Hashes can be forged, so that the way back may be a circle.
    for (let steps = this.#size; entry !== 0 && steps > 0; steps--) {
      this.#setTier(entry, isWarm);
      this.#words[entry * WORDS + SECONDS] = seconds;
      this.#moveToNewest(entry);
      entry = this.#parentOf(entry);
    }
  }

  /** How many blocks of a chain the backend claims to hold in its GPU: up to the deepest that it has claimed. */
  toldOf(chain: Uint32Array, slot: number, sinceSeconds: number): number {
    for (let word = chain.length - 2; word >= 0; word -= 2) {
      const at = this.find(chain[word] as number, chain[word + 1] as number, slot) * WORDS;
      const isTold = ((this.#words[at + OWNER] as number) & (NAMED | WARM)) === NAMED;
      if (isTold && (this.#words[at + SECONDS] as number) >= sinceSeconds) return (word >> 1) + 1;
    }
    return 0;
  }

  /**
   * Releases the blocks that belong to a hash alone: its own, and those before it that lead nowhere else and were not claimed
   * by themselves. They are gone, or they are kept outside of the GPU.
   */
  release(low: number, high: number, slot: number, staysWarm: boolean): void {
    let entry = this.find(low, high, slot);
    let isFirst = true;
    for (let steps = this.#size; entry !== 0 && steps > 0; steps--) {
      const parent = this.#parentOf(entry);
      const owner = this.#words[entry * WORDS + OWNER] as number;
      const children = this.#words[entry * WORDS + CHILDREN] as number;
      if (!isFirst && ((owner & NAMED) !== 0 || children > (staysWarm ? 1 : 0))) return;
      if (staysWarm) this.#setTier(entry, true);
      else this.#remove(entry);
      isFirst = false;
      entry = parent;
    }
  }

  isWarm(low: number, high: number, slot: number): boolean {
    const entry = this.find(low, high, slot);
    return entry !== 0 && ((this.#words[entry * WORDS + OWNER] as number) & WARM) !== 0;
  }

  /**
   * How much of a chain each backend holds. A hash stands for all before it: a backend that has claimed one holds these
   * blocks too, whether or not they were ever seen here.
   * @param sinceSeconds - what was renewed before does not count
   * @param countsWarm - what is not in the GPU counts too
   */
  look(chain: Uint32Array, sinceSeconds: number, countsWarm: boolean, { matched, learnt, warm }: Overlap): void {
    const words = this.#words;
    const heads = this.#heads;
    const { hasClaims } = this;
    matched.fill(0);
    if (hasClaims) learnt.fill(0);
    warm.fill(0);
    for (let word = 0; word < chain.length; word += 2) {
      const low = chain[word] as number;
      const high = chain[word + 1] as number;
      const before = word >> 1;
      let isHeld = false;
      let entry = heads[this.#bucket(low, high)] as number;
      while (entry !== 0) {
        const at = entry * WORDS;
        entry = words[at + NEXT] as number;
        if (words[at + LOW] !== low || words[at + HIGH] !== high || (words[at + SECONDS] as number) < sinceSeconds) {
          continue;
        }
        const owner = words[at + OWNER] as number;
        const slot = owner & SLOT_MASK;
        const isWarm = (owner & WARM) !== 0;
        const held = matched[slot] as number;
        if ((held !== before && (owner & NAMED) === 0) || (isWarm && !countsWarm)) continue;
        matched[slot] = before + 1;
        if (hasClaims && (owner & LEARNT) !== 0 && learnt[slot] === before) learnt[slot] = before + 1;
        if (isWarm) warm[slot] = (warm[slot] as number) + before + 1 - held;
        isHeld = true;
      }
      if (!isHeld && !hasClaims) return;
    }
  }

  /** Forgets what was not renewed since then. Costs nothing while the second is the same. */
  expire(sinceSeconds: number): void {
    if (sinceSeconds === this.#expiredSeconds) return;
    this.#expiredSeconds = sinceSeconds;
    for (let end = OLDEST; end < this.#slots.length; end += SLOT_WORDS) {
      let oldest = this.#slots[end] as number;
      while (oldest !== 0 && (this.#words[oldest * WORDS + SECONDS] as number) < sinceSeconds) {
        this.#remove(oldest);
        oldest = this.#slots[end] as number;
      }
    }
  }

  /** Forgets all entries of a backend. */
  clear(slot: number): void {
    while (this.entriesOf(slot) > 0) this.#remove(this.#slots[slot * SLOT_WORDS + OLDEST] as number);
  }

  image(): TableImage {
    return {
      words: this.#words.slice(0, (this.#used + 1) * WORDS),
      capacity: this.#capacity,
      free: this.#free,
      used: this.#used,
      size: this.#size,
      named: this.#named,
      factors: [this.#lowFactor, this.#highFactor],
      slots: this.#slots.slice(),
    };
  }

  /** Becomes what another table of the same bound was. */
  restore({ words, capacity, free, used, size, named, factors, slots }: TableImage): void {
    this.#capacity = capacity;
    this.#words = new Uint32Array((capacity + 1) * WORDS);
    this.#words.set(words);
    [this.#free, this.#used, this.#size] = [free, used, size];
    this.#named = named;
    [this.#lowFactor, this.#highFactor] = factors;
    this.#slots = slots.slice();
    this.#findMost();
    this.#fillBuckets();
  }

  /** Puts into an empty table what it has room for: of each backend the newest. */
  copyTo(other: PrefixTable): void {
    for (let end = OLDEST; end < this.#slots.length; end += SLOT_WORDS) {
      for (let entry = this.#slots[end] as number; entry !== 0; entry = this.#words[entry * WORDS + NEWER] as number) {
        other.#addCopy(this, entry);
      }
    }
    // Parents are newer than what follows them: only now all of them are there.
    for (let entry = 1; entry <= this.#used; entry++) {
      const isInUse = ((this.#words[entry * WORDS + OWNER] as number) & IN_USE) !== 0;
      const parent = isInUse ? this.#parentOf(entry) : 0;
      if (parent !== 0) other.#adopt(other.#twin(this, parent), other.#twin(this, entry));
    }
  }

  #addCopy(other: PrefixTable, entry: number): void {
    const at = entry * WORDS;
    const { [at + LOW]: low = 0, [at + HIGH]: high = 0, [at + OWNER]: owner = 0 } = other.#words;
    const copy = this.#findOrAdd(low, high, owner & SLOT_MASK);
    this.#words[copy * WORDS + OWNER] = owner & ~NAMED;
    if ((owner & NAMED) !== 0) this.#name(copy);
    this.#words[copy * WORDS + SECONDS] = other.#words[at + SECONDS] as number;
  }

  /** The entry here of what is an entry there; 0 where it had no room. */
  #twin(other: PrefixTable, entry: number): number {
    const at = entry * WORDS;
    const { [at + LOW]: low = 0, [at + HIGH]: high = 0, [at + OWNER]: owner = 0 } = other.#words;
    return this.find(low, high, owner & SLOT_MASK);
  }

  #bucket(low: number, high: number): number {
    return (Math.imul(low, this.#lowFactor) + Math.imul(high, this.#highFactor)) >>> this.#shift;
  }

  /** 0 where the only place for it is that of `kept`, which may not go. */
  #findOrAdd(low: number, high: number, slot: number, kept = 0): number {
    const known = this.find(low, high, slot);
    if (known !== 0) return known;
    while (slot * SLOT_WORDS >= this.#slots.length) this.#growSlots();
    const entry = this.#take(slot, kept);
    if (entry === 0) return 0;
    const words = this.#words;
    const at = entry * WORDS;
    const bucket = this.#bucket(low, high);
    words[at + LOW] = low;
    words[at + HIGH] = high;
    words[at + NEXT] = this.#heads[bucket] as number;
    words[at + OWNER] = slot | IN_USE;
    words[at + SECONDS] = 0;
    words[at + PARENT] = 0;
    words[at + CHILDREN] = 0;
    this.#heads[bucket] = entry;
    this.#size++;
    const count = this.entriesOf(slot) + 1;
    this.#slots[slot * SLOT_WORDS + COUNT] = count;
    this.#compare(slot, count);
    this.#linkNewest(entry);
    return entry;
  }

  /** A free entry for a slot; when there is none any more, one that is given up, unless that were `kept`. */
  #take(slot: number, kept: number): number {
    if (this.#free === 0 && this.#used === this.#capacity) {
      if (this.#capacity < this.#maxEntries) this.#grow();
      else {
        const given = this.#slots[this.#giver(slot) * SLOT_WORDS + OLDEST] as number;
        if (given === kept) return 0;
        this.#remove(given);
      }
    }
    const free = this.#free;
    if (free === 0) return ++this.#used;
    this.#free = this.#words[free * WORDS + NEXT] as number;
    return free;
  }

  /** The slot with the most entries; where several have as many, rather the one that needs the room. */
  #giver(needy: number): number {
    if (this.entriesOf(this.#most) < this.#others) this.#findMost();
    return this.entriesOf(needy) >= this.entriesOf(this.#most) ? needy : this.#most;
  }

  #findMost(): void {
    this.#others = 0;
    for (let slot = 0; slot * SLOT_WORDS < this.#slots.length; slot++) this.#compare(slot, this.entriesOf(slot));
  }

  /** A slot has so many entries now, which may be the most. */
  #compare(slot: number, count: number): void {
    if (slot === this.#most) return;
    const most = this.entriesOf(this.#most);
    if (count > most) this.#most = slot;
    this.#others = Math.max(this.#others, Math.min(count, most));
  }

  #growSlots(): void {
    const slots = new Uint32Array(this.#slots.length * 2);
    slots.set(this.#slots);
    this.#slots = slots;
  }

  #grow(): void {
    this.#capacity = Math.min(this.#maxEntries, this.#capacity * 2);
    const words = new Uint32Array((this.#capacity + 1) * WORDS);
    words.set(this.#words);
    this.#words = words;
    this.#fillBuckets();
  }

  #fillBuckets(): void {
    const words = this.#words;
    [this.#heads, this.#shift] = newHeads(this.#capacity);
    for (let entry = 1; entry <= this.#used; entry++) {
      const at = entry * WORDS;
      if (((words[at + OWNER] as number) & IN_USE) === 0) continue;
      const bucket = this.#bucket(words[at + LOW] as number, words[at + HIGH] as number);
      words[at + NEXT] = this.#heads[bucket] as number;
      this.#heads[bucket] = entry;
    }
  }

  #remove(entry: number): void {
    const words = this.#words;
    const at = entry * WORDS;
    const bucket = this.#bucket(words[at + LOW] as number, words[at + HIGH] as number);
    let place = this.#heads[bucket] as number;
    if (place === entry) this.#heads[bucket] = words[at + NEXT] as number;
    else {
      while (words[place * WORDS + NEXT] !== entry) place = words[place * WORDS + NEXT] as number;
      words[place * WORDS + NEXT] = words[at + NEXT] as number;
    }
    const parent = this.#parentOf(entry);
    if (parent !== 0) words[parent * WORDS + CHILDREN] = (words[parent * WORDS + CHILDREN] as number) - 1;
    this.#unlink(entry);
    if (((words[at + OWNER] as number) & NAMED) !== 0) this.#named--;
    const count = this.#slotOf(entry) + COUNT;
    this.#slots[count] = (this.#slots[count] as number) - 1;
    words[at + OWNER] = 0;
    words[at + NEXT] = this.#free;
    this.#free = entry;
    this.#size--;
  }

  /** 0 where it has none, or that is gone. */
  #parentOf(entry: number): number {
    const words = this.#words;
    const at = entry * WORDS;
    const parent = words[at + PARENT] as number;
    if (parent === 0) return 0;
    const owner = words[parent * WORDS + OWNER] as number;
    const isSame =
      (owner & IN_USE) !== 0 &&
      words[parent * WORDS + LOW] === words[at + PARENT_LOW] &&
      (owner & SLOT_MASK) === ((words[at + OWNER] as number) & SLOT_MASK);
    return isSame ? parent : 0;
  }

  #adopt(parent: number, entry: number): void {
    if (parent === 0 || entry === 0 || this.#parentOf(entry) === parent) return;
    const words = this.#words;
    words[entry * WORDS + PARENT] = parent;
    words[entry * WORDS + PARENT_LOW] = words[parent * WORDS + LOW] as number;
    words[parent * WORDS + CHILDREN] = (words[parent * WORDS + CHILDREN] as number) + 1;
  }

  #setTier(entry: number, isWarm: boolean): void {
    const owner = this.#words[entry * WORDS + OWNER] as number;
    this.#words[entry * WORDS + OWNER] = isWarm ? owner | WARM : owner & ~WARM;
  }

  #name(entry: number): void {
    const owner = this.#words[entry * WORDS + OWNER] as number;
    if ((owner & NAMED) === 0) this.#named++;
    this.#words[entry * WORDS + OWNER] = owner | NAMED;
  }

  /** Where the words of its slot begin. */
  #slotOf(entry: number): number {
    return ((this.#words[entry * WORDS + OWNER] as number) & SLOT_MASK) * SLOT_WORDS;
  }

  #moveToNewest(entry: number): void {
    if (this.#words[entry * WORDS + NEWER] === 0) return;
    this.#unlink(entry);
    this.#linkNewest(entry);
  }

  /** Directly older than another one of its slot. */
  #moveBehind(entry: number, newer: number): void {
    const words = this.#words;
    if (words[newer * WORDS + OLDER] === entry) return;
    this.#unlink(entry);
    const older = words[newer * WORDS + OLDER] as number;
    words[entry * WORDS + NEWER] = newer;
    words[entry * WORDS + OLDER] = older;
    words[newer * WORDS + OLDER] = entry;
    if (older === 0) this.#slots[this.#slotOf(entry) + OLDEST] = entry;
    else words[older * WORDS + NEWER] = entry;
  }

  #linkNewest(entry: number): void {
    const words = this.#words;
    const slot = this.#slotOf(entry);
    const older = this.#slots[slot + NEWEST] as number;
    words[entry * WORDS + OLDER] = older;
    words[entry * WORDS + NEWER] = 0;
    if (older === 0) this.#slots[slot + OLDEST] = entry;
    else words[older * WORDS + NEWER] = entry;
    this.#slots[slot + NEWEST] = entry;
  }

  #unlink(entry: number): void {
    const words = this.#words;
    const older = words[entry * WORDS + OLDER] as number;
    const newer = words[entry * WORDS + NEWER] as number;
    const slot = this.#slotOf(entry);
    if (older === 0) this.#slots[slot + OLDEST] = newer;
    else words[older * WORDS + NEWER] = newer;
    if (newer === 0) this.#slots[slot + NEWEST] = older;
    else words[newer * WORDS + OLDER] = older;
  }
}

/** About as many buckets as entries, a power of two. */
function newHeads(capacity: number): [heads: Uint32Array, shift: number] {
  const bits = Math.max(1, Math.ceil(Math.log2(capacity)));
  return [new Uint32Array(2 ** bits), 32 - bits];
}
