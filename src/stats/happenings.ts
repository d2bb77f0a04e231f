// Events of the gateway for one listener. Most of the time there is none, and then an event costs one check.

import type { RequestRecord } from "./request-record.ts";

export interface HealthChange {
  backend: string;
  from: string;
  to: string;
  /** The fault that the last check found, if it found one. */
  reason: string | undefined;
}

/** A share of a budget was crossed; amounts as people write them. */
export interface BudgetChange {
  budget: string;
  /** The key, user, organization or model whose own budget it is; "" where all share one. */
  subject: string;
  share: number;
  amount: string;
  spent: number;
  limit: number;
}

/** A target of a route was worse than the main one, and gets no more requests. */
export interface RouteRollback {
  route: string;
  arm: string;
  metric: string;
  value: number;
  /** Of the main target. */
  compared: number;
  main: string;
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
  budgetCrossed(change: BudgetChange): void;
  routeRolledBack(change: RouteRollback): void;
  /** A key or a session may have lost its access. */
  accessChanged(): void;
  /** The gateway ends: no more events will come. */
  closing(): void;
}

/** Hears of rare events, whether or not there is a listener. */
type HappeningsWatcher = Pick<
  HappeningsListener,
  "healthChanged" | "circuitChanged" | "budgetCrossed" | "routeRolledBack"
>;

export class Happenings implements HappeningsListener {
  #listener: HappeningsListener | undefined;
  #watcher: HappeningsWatcher | undefined;
  #isClosing = false;

  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** There is one listener; undefined removes it. */
  listen(listener: HappeningsListener | undefined): void {
    this.#listener = listener;
  }

  /** There is one watcher, for as long as the gateway lives. */
  watch(watcher: HappeningsWatcher): void {
    this.#watcher = watcher;
  }

  requestEnded(story: RequestRecord): void {
    this.#listener?.requestEnded(story);
  }

  healthChanged(change: HealthChange): void {
    this.#listener?.healthChanged(change);
    this.#watcher?.healthChanged(change);
  }

  circuitChanged(change: StateChange): void {
    this.#listener?.circuitChanged(change);
    this.#watcher?.circuitChanged(change);
  }

  budgetCrossed(change: BudgetChange): void {
    this.#listener?.budgetCrossed(change);
    this.#watcher?.budgetCrossed(change);
  }

  routeRolledBack(change: RouteRollback): void {
    this.#listener?.routeRolledBack(change);
    this.#watcher?.routeRolledBack(change);
  }

  accessChanged(): void {
    this.#listener?.accessChanged();
  }

  closing(): void {
    this.#isClosing = true;
    this.#listener?.closing();
  }
}
