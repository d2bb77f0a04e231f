// Model id -> backend: which backends may serve a request, which of them does, and why the others may not.

import type { BackendEntry } from "../backends/board.ts";
import { type Operation, servedBy } from "../backends/kinds.ts";
import type { Candidate } from "../stats/request-log.ts";
import type { Circuits, Permit } from "./circuits.ts";
import type { SelectionQuery, SelectionStrategy, TellScore } from "./strategy.ts";

/** What decides who may be asked for a request. */
export interface RoutedRequest {
  operation: Operation;
  /** The backend that holds what the request refers to; asked first while it may be. */
  prefer?: string | undefined;
  /** Backends that are asked only when no other is left, because the request has failed there before. */
  avoid: ReadonlySet<string>;
  /** Tried backends that are not asked again: they have refused the gateway's credential. */
  refusedBy?: ReadonlySet<string>;
}

/** A backend that was chosen and may be sent the request. */
export interface Admitted {
  entry: BackendEntry;
  permit: Permit;
  /** Everyone who was considered; undefined where there was nobody else, or nobody wants to know. */
  told?: readonly Candidate[] | undefined;
  /** What the scores of these say; undefined where no strategy was asked. */
  scoreMeans?: string | undefined;
}

export interface Router {
  /**
   * Chooses a backend and has it admitted: one that was not tried yet, or, when all were, one that was. Backends of
   * weight 0 stand by: they are chosen only when no other is left. One that is not admitted is no candidate any more by
   * that, and gives way to the next. Undefined when there is nobody. Only a choice that is admitted moves a turn.
   */
  choose(
    candidates: readonly BackendEntry[],
    request: RoutedRequest,
    tried: ReadonlySet<string>,
    query: SelectionQuery,
    admit: (backendName: string) => Permit | undefined,
    isTold: boolean,
  ): Admitted | undefined;
  /** Whether a backend may be asked now. */
  mayAsk(entry: BackendEntry, operation: Operation): boolean;
}

export interface RouterParts {
  strategy: SelectionStrategy;
  circuits: Pick<Circuits, "allows">;
  limits: { backendHasRoom(backendName: string): boolean };
}

type Exclusion = "no_operation" | "circuit_open" | "rate_limited" | "avoided" | "tried" | "standby" | "over_share";

/** How many candidates a story names. */
const MAX_TOLD = 32;

export function createRouter({ strategy, circuits, limits }: RouterParts): Router {
  /** Why a backend cannot be asked, whoever else is left. */
  function refusalOf(entry: BackendEntry, operation: Operation): Exclusion | undefined {
    if (!hasOperation(entry, operation)) return "no_operation";
    const { name } = entry.backend;
    if (!circuits.allows(name)) return "circuit_open";
    return limits.backendHasRoom(name) ? undefined : "rate_limited";
  }

  /** The place of the preferred backend while it may be asked, else -1. */
  function preferredOf(
    candidates: readonly BackendEntry[],
    { prefer, operation }: RoutedRequest,
    tried: ReadonlySet<string>,
  ): number {
    if (prefer === undefined || tried.has(prefer)) return -1;
    return candidates.findIndex((entry) => entry.backend.name === prefer && refusalOf(entry, operation) === undefined);
  }

  return {
    mayAsk: (entry, operation) => refusalOf(entry, operation) === undefined,
    choose(candidates, request, tried, query, admit, isTold) {
      const { operation, avoid, refusedBy } = request;
      let reserve = 0;
      const allowed = (entry: BackendEntry) =>
        reserveOf(entry, tried) === reserve &&
        !refusedBy?.has(entry.backend.name) &&
        refusalOf(entry, operation) === undefined;
      const tale =
        !isTold || candidates.length < 2
          ? undefined
          : new Tale(candidates, (entry) => {
              const refusal = refusalOf(entry, operation);
              if (refusal !== undefined || reserveOf(entry, tried) < reserve) return refusal;
              const { name } = entry.backend;
              if (refusedBy?.has(name)) return "tried";
              if (reserveOf(entry, tried) === reserve) return undefined;
              if (!tried.has(name)) return "standby";
              return avoid.has(name) ? "avoided" : "tried";
            });
      let preferred = preferredOf(candidates, request, tried);
      const lastReserve = tried.size === 0 ? 1 : 3;
      while (reserve <= lastReserve) {
        const isDrawn = preferred < 0;
        const chosen = isDrawn ? strategy.choose(candidates, allowed, query, tale?.score) : preferred;
        preferred = -1;
        if (chosen < 0) {
          reserve++;
          continue;
        }
        const entry = candidates[chosen] as BackendEntry;
        const told = tale?.tell(chosen); // before the permit changes what is told
        const permit = admit(entry.backend.name);
        if (permit === undefined) continue;
        if (isDrawn) strategy.used?.(candidates, allowed, query, chosen);
        return { entry, permit, told, scoreMeans: isDrawn ? strategy.scoreMeans : undefined };
      }
      return undefined;
    },
  };
}

/** 0 for those that are asked first; who has a higher number is asked when nobody with a lower one is left. */
function reserveOf({ backend }: BackendEntry, tried: ReadonlySet<string>): number {
  return (tried.has(backend.name) ? 2 : 0) + (backend.weight > 0 ? 0 : 1);
}

/** Who was considered in one decision: scored by the strategy, left out by the router. */
class Tale {
  readonly #candidates: readonly BackendEntry[];
  readonly #exclusionOf: (entry: BackendEntry) => Exclusion | undefined;
  /** By place; who was not allowed has none. */
  #scores: (number | undefined)[] = [];
  #overShare: Set<number> | undefined;

  constructor(candidates: readonly BackendEntry[], exclusionOf: (entry: BackendEntry) => Exclusion | undefined) {
    this.#candidates = candidates;
    this.#exclusionOf = exclusionOf;
  }

  readonly score: TellScore = (place, score, isOverShare) => {
    this.#scores[place] = score;
    if (isOverShare !== true) return;
    this.#overShare ??= new Set();
    this.#overShare.add(place);
  };

  /** In the order of the configuration; of many the first ones and the chosen one. What was scored is told once. */
  tell(chosen: number): Candidate[] {
    const told: Candidate[] = [];
    const count = Math.min(this.#candidates.length, MAX_TOLD);
    for (let index = 0; index < count; index++) {
      const place = index === MAX_TOLD - 1 && chosen > index ? chosen : index;
      told.push(this.#tellOne(place, place === chosen));
    }
    this.#scores = [];
    this.#overShare = undefined;
    return told;
  }

  #tellOne(place: number, isChosen: boolean): Candidate {
    const { backend, counters } = this.#candidates[place] as BackendEntry;
    const score = this.#scores[place];
    let excluded: Exclusion | undefined;
    if (!isChosen) {
      if (score === undefined) excluded = this.#exclusionOf(this.#candidates[place] as BackendEntry);
      else if (this.#overShare?.has(place)) excluded = "over_share";
    }
    const { inFlight: in_flight, latencyMs: latency_ms } = counters;
    return { backend: backend.name, score, in_flight, latency_ms, excluded };
  }
}

/** Whether the backend can do it, be it by means of another operation. */
export function hasOperation({ backend }: BackendEntry, operation: Operation): boolean {
  return servedBy(backend.paths, operation) !== undefined;
}
