// What a new owner of the queue is asked before it knows which slots are taken: kept until the other gateways have said what they
// have, then answered in the order of age.

import { laterBy } from "./admission.ts";
import type { ToOwner } from "./remote-admission.ts";

interface GatedDesk {
  heard(message: ToOwner): void;
}

interface KeptMessage {
  desk: GatedDesk;
  message: ToOwner;
  atMs: number;
}

export class OwnerGate {
  readonly #now: () => number;
  readonly #awaited: Set<string>;
  #kept: KeptMessage[] = [];
  #isOpen = false;
  readonly #timer: Timer;

  /**
   * @param awaited - the gateways that have to say what they have
   * @param limitMs - they are not waited for any longer
   */
  constructor(awaited: readonly string[], limitMs: number, now: () => number) {
    this.#awaited = new Set(awaited);
    this.#now = now;
    this.#timer = setTimeout(() => this.open(), limitMs);
    if (awaited.length === 0) this.open();
  }

  heard(desk: GatedDesk, message: ToOwner): void {
    const { kind } = message;
    if (this.#isOpen || kind === "holds" || kind === "ended" || kind === "streamed") desk.heard(message);
    else this.#kept.push({ desk, message, atMs: this.#now() });
  }

  /** A gateway has said what it has, or is gone. */
  toldBy(id: string): void {
    this.#awaited.delete(id);
    if (this.#awaited.size === 0) this.open();
  }

  /** What this desk was asked is answered by no one. */
  forget(desk: GatedDesk): void {
    this.#kept = this.#kept.filter((one) => one.desk !== desk);
  }

  open(): void {
    clearTimeout(this.#timer);
    if (this.#isOpen) return;
    this.#isOpen = true;
    const nowMs = this.#now();
    const waits = this.#kept.filter(isWait).toSorted(byAge);
    const others = this.#kept.filter((one) => !isWait(one));
    this.#kept = [];
    for (const { desk, message, atMs } of waits) {
      desk.heard({ ...message, ask: laterBy(message.ask, nowMs - atMs) });
    }
    for (const { desk, message, atMs } of others) {
      desk.heard(message.kind === "take" ? { ...message, ask: laterBy(message.ask, nowMs - atMs) } : message);
    }
  }
}

type KeptWait = KeptMessage & { message: Extract<ToOwner, { kind: "wait" }> };

function isWait(kept: KeptMessage): kept is KeptWait {
  return kept.message.kind === "wait";
}

function byAge(one: KeptWait, other: KeptWait): number {
  const first = Number(other.message.ask.goesFirst) - Number(one.message.ask.goesFirst);
  return first || one.atMs - one.message.ask.ageMs - (other.atMs - other.message.ask.ageMs);
}
