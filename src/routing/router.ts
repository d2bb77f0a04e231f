// Model id -> backend: which backends may serve a request, which of them does, and why the others may not.

import type { BackendSlot } from "../admission/admission.ts";
import { openRequests } from "../backends/backend.ts";
import type { BackendEntry } from "../backends/board.ts";
import { type Operation, servedBy } from "../backends/operations.ts";
import type { Candidate } from "../stats/request-record.ts";
import { Choice } from "./choice.ts";
import type { Circuits, Permit } from "./circuits.ts";
import type { SelectionQuery, SelectionStrategy } from "./strategy.ts";

/** The facts of a request that decide which backends may be asked. */
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
  /** Undefined: requests do not wait for slots. */
  slot?: BackendSlot | undefined;
  /** Every backend that was considered; undefined where there was only one, or the caller does not ask for it. */
  told?: readonly Candidate[] | undefined;
  /** The meaning of these scores; undefined where no strategy was asked. */
  scoreMeans?: string | undefined;
  /** Its circuit is open, as are those of all others that could have been asked. */
  inPanic?: boolean;
  /** Where that was another than the one of the configuration. */
  decidedBy?: SelectionStrategy["decidedBy"];
}

interface RouterParts {
  strategy: SelectionStrategy;
  circuits: Pick<Circuits, "allows">;
  limits: { backendHasRoom(backendName: string): boolean };
}

/** Why no backend can be asked, and why one is passed over for others. */
type Refusal = "no_operation" | "circuit_open" | "rate_limited";
type Exclusion = Refusal | "avoided" | "tried" | "standby" | "no_slot";

/** How many candidates a story names. */
const MAX_TOLD = 32;

export function createRouter({ strategy, circuits, limits }: RouterParts) {
  const choice = new Choice();

  function refusalOf(entry: BackendEntry, operation: Operation): Refusal | undefined {
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

  /** Why a backend is not asked while those of the given reserve are. */
  function exclusionOf(
    entry: BackendEntry,
    { operation, avoid, refusedBy }: RoutedRequest,
    tried: ReadonlySet<string>,
    reserve: number,
  ): Exclusion | undefined {
    const refusal = refusalOf(entry, operation);
    const own = reserveOf(entry, tried);
    if (refusal !== undefined || own < reserve) return refusal;
    const { name } = entry.backend;
    if (refusedBy?.has(name)) return "tried";
    if (own === reserve) return undefined;
    if (!tried.has(name)) return "standby";
    return avoid.has(name) ? "avoided" : "tried";
  }

  /** Everyone who was considered, in the order of the configuration; of many the first ones and the chosen one. */
  function tell(
    { candidates, scores, objections }: Choice,
    chosen: number,
    request: RoutedRequest,
    tried: ReadonlySet<string>,
    reserve: number,
    { hasRoom }: Pick<SelectionQuery, "hasRoom">,
  ): Candidate[] {
    const told: Candidate[] = [];
    const count = Math.min(candidates.length, MAX_TOLD);
    for (let index = 0; index < count; index++) {
      const place = index === MAX_TOLD - 1 && chosen > index ? chosen : index;
      const entry = candidates[place] as BackendEntry;
      const score = scores[place];
      let excluded: string | undefined;
      if (place !== chosen) {
        const { name } = entry.backend;
        excluded = score === undefined ? exclusionOf(entry, request, tried, reserve) : objections[place];
        if (excluded === undefined && hasRoom?.(name) === false) excluded = "no_slot";
      }
      const { latencyMs } = entry.counters;
      told.push({ backend: entry.backend.name, score, inFlight: openRequests(entry.counters), latencyMs, excluded });
    }
    return told;
  }

  return {
    /** True if a backend may be asked now. */
    mayAsk: (entry: BackendEntry, operation: Operation) => refusalOf(entry, operation) === undefined,
    /** The backends one of which choose() would take, whether they have a slot or not. */
    open(candidates: readonly BackendEntry[], request: RoutedRequest, tried: ReadonlySet<string>): string[] {
      const { operation, refusedBy, prefer } = request;
      if (preferredOf(candidates, request, tried) >= 0) return [prefer as string];
      const askable = candidates.filter(
        (entry) => !refusedBy?.has(entry.backend.name) && refusalOf(entry, operation) === undefined,
      );
      const reserve = Math.min(...askable.map((entry) => reserveOf(entry, tried)));
      return askable.filter((entry) => reserveOf(entry, tried) === reserve).map(({ backend }) => backend.name);
    },
    /**
     * Chooses a backend and has it admitted: one that was not tried yet, or, when all were, one that was. Backends of
     * weight 0 stand by: they are chosen only when no other is left. One that is not admitted is no candidate any more by
     * that, and gives way to the next. Undefined when there is none, or those that would be asked have no slot. Only a choice that is admitted moves a turn.
     */
    choose(
      candidates: readonly BackendEntry[],
      request: RoutedRequest,
      tried: ReadonlySet<string>,
      query: SelectionQuery,
      admit: (backendName: string) => Permit | undefined,
      isTold: boolean,
    ): Admitted | undefined {
      const { operation, refusedBy } = request;
      let preferred = preferredOf(candidates, request, tried);
      const lastReserve = tried.size === 0 ? 1 : 3;
      for (let reserve = 0; reserve <= lastReserve; ) {
        const isDrawn = preferred < 0;
        choice.begin(candidates);
        let isFull = !isDrawn && !hasSlot(candidates[preferred] as BackendEntry, query);
        for (let place = 0; isDrawn && place < candidates.length; place++) {
          const entry = candidates[place] as BackendEntry;
          if (reserveOf(entry, tried) !== reserve || refusedBy?.has(entry.backend.name)) continue;
          if (refusalOf(entry, operation) !== undefined) continue;
          if (hasSlot(entry, query)) choice.places.push(place);
          else isFull = true;
        }
        const chosen = isDrawn ? choice.choose(strategy, query) : isFull ? -1 : preferred;
        preferred = -1;
        if (chosen < 0) {
          if (isFull) return undefined; // it waits for one of these
          reserve++;
          continue;
        }
        const entry = candidates[chosen] as BackendEntry;
        // Before the permit changes what is shown.
        const told = isTold && candidates.length > 1 ? tell(choice, chosen, request, tried, reserve, query) : undefined;
        const permit = admit(entry.backend.name);
        if (permit === undefined) continue;
        if (!isDrawn) return { entry, permit, told, scoreMeans: undefined };
        strategy.used?.(choice, query, chosen);
        return { entry, permit, told, scoreMeans: strategy.scoreMeans, decidedBy: strategy.decidedBy };
      }
      return undefined;
    },
  };
}

function hasSlot({ backend }: BackendEntry, { hasRoom }: SelectionQuery): boolean {
  return hasRoom === undefined || hasRoom(backend.name);
}

/** 0 for those that are asked first; higher numbers are asked when no lower one is left. */
function reserveOf({ backend }: BackendEntry, tried: ReadonlySet<string>): number {
  return (tried.has(backend.name) ? 2 : 0) + (backend.weight > 0 ? 0 : 1);
}

/** True if the backend has the operation, or another by which it can be done. */
export function hasOperation({ backend }: BackendEntry, operation: Operation): boolean {
  return servedBy(backend.paths, operation) !== undefined;
}
