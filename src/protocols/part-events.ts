// Writes events in the order that generation/events.ts promises, whatever order the backend's own events came in.

import type { Citation, ProtocolName } from "../generation/content.ts";
import type { GenerationEvent, PartStart } from "../generation/events.ts";
import type { JsonObject } from "../lib/json.ts";

export class PartEvents {
  #events: GenerationEvent[] = [];
  #next = 0;
  /** The open part that is no tool call. */
  #current: number | undefined;
  readonly #calls = new Set<number>();

  /** The events since the last take(). */
  take(): GenerationEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  push(event: GenerationEvent): void {
    this.#events.push(event);
  }

  /** Begins a part; what may not be open beside it is closed first. */
  start(part: PartStart): number {
    const isCall = part.type === "tool-call";
    this.#endCurrent();
    if (!isCall) this.#endCalls();
    const index = this.#next++;
    this.#events.push({ type: "part-start", index, part });
    if (isCall) this.#calls.add(index);
    else this.#current = index;
    return index;
  }

  /** A part that comes whole. */
  whole(part: PartStart): void {
    this.end(this.start(part));
  }

  get hasOpenCalls(): boolean {
    return this.#calls.size > 0;
  }

  isOpen(index: number | undefined): index is number {
    return index !== undefined && (index === this.#current || this.#calls.has(index));
  }

  delta(index: number, text: string, own?: JsonObject): void {
    if (text === "" || !this.isOpen(index)) return;
    this.#events.push(own === undefined ? { type: "delta", index, text } : { type: "delta", index, text, own });
  }

  cite(index: number, citation: Citation): void {
    if (this.isOpen(index)) this.#events.push({ type: "citation", index, citation });
  }

  seal(index: number, origin: ProtocolName, sealed: string): void {
    if (this.isOpen(index)) this.#events.push({ type: "seal", index, origin, sealed });
  }

  end(index: number | undefined): void {
    if (!this.isOpen(index)) return;
    if (index === this.#current) this.#current = undefined;
    this.#calls.delete(index);
    this.#events.push({ type: "part-end", index });
  }

  endAll(): void {
    this.#endCurrent();
    this.#endCalls();
  }

  #endCurrent(): void {
    this.end(this.#current);
  }

  #endCalls(): void {
    for (const index of [...this.#calls]) this.end(index);
  }
}
