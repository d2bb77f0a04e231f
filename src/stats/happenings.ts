// What happens in the gateway, told to whoever listens at the moment: nobody, most of the time, and then telling costs a
// look.

import type { RequestRecord } from "./request-record.ts";

export interface HealthChange {
  backend: string;
  from: string;
  to: string;
  /** What the last check found, where it found a fault. */
  reason: string | undefined;
}

interface StateChange {
  backend: string;
  from: string;
  to: string;
}

export interface HappeningsListener {
  requestEnded(story: RequestRecord): void;
  healthChanged(change: HealthChange): void;
  circuitChanged(change: StateChange): void;
  /** Somebody may not be let in any more who was. */
  accessChanged(): void;
  /** The gateway ends: whoever waits for more waits in vain. */
  closing(): void;
}

export class Happenings implements HappeningsListener {
  #listener: HappeningsListener | undefined;
  #isClosing = false;

  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** There is one listener; undefined: nobody listens any more. */
  listen(listener: HappeningsListener | undefined): void {
    this.#listener = listener;
  }

  requestEnded(story: RequestRecord): void {
    this.#listener?.requestEnded(story);
  }

  healthChanged(change: HealthChange): void {
    this.#listener?.healthChanged(change);
  }

  circuitChanged(change: StateChange): void {
    this.#listener?.circuitChanged(change);
  }

  accessChanged(): void {
    this.#listener?.accessChanged();
  }

  closing(): void {
    this.#isClosing = true;
    this.#listener?.closing();
  }
}
