// Which backends may be asked for a model now, what is worth waiting for when none may, and the refusal otherwise.

import type { BackendSlot, SlotQuery } from "../admission/admission.ts";
import type { BackendBoard, BackendEntry } from "../backends/board.ts";
import { mayHoldFiles } from "../backends/kind.ts";
import { ERRORS } from "../errors/catalog.ts";
import { clientLeft, GatewayError, unknownFile } from "../errors/gateway-error.ts";
import { abortableDelay, orAborted } from "../lib/abortable-delay.ts";
import { RateLimitError } from "../rate-limit/decision.ts";
import type { Limiter } from "../rate-limit/limiter.ts";
import type { Circuits, Permit } from "../routing/circuits.ts";
import { noBackendError } from "../routing/no-backend.ts";
import { type Admitted, createRouter, hasOperation } from "../routing/router.ts";
import type { SelectionQuery, SelectionStrategy } from "../routing/strategy.ts";
import type { BackendWatch, RequestContext } from "./context.ts";
import { goesOnExactly } from "./exact-continuation.ts";
import type { AskedMedia, MediaFit } from "./media-fit.ts";
import type { ModelRequest } from "./model-request.ts";
import { createNarrowing } from "./narrowed-board.ts";
import type { PromptPrefixes } from "./prefixes.ts";
import { sessionKey } from "./session-key.ts";
import type { Turns } from "./turns.ts";

export interface CandidatesParts {
  watch: BackendWatch;
  strategy: SelectionStrategy;
  circuits: Circuits;
  /** Undefined: nothing is known of what models take. */
  media?: Pick<MediaFit, "fitting" | "isAnyKnown" | "refusal"> | undefined;
  /** The part of the rate limiter that concerns backends. */
  limits: Pick<Limiter, "backendHasRoom" | "takesLater" | "takeBackend" | "backendRefusal">;
  /** The queue in front of the backends; undefined: no request waits. */
  turns?: Turns | undefined;
  /** Undefined: prompts that begin alike are not looked for. */
  prefixes?: PromptPrefixes | undefined;
  now(): number;
  random(): number;
  /** Waits, or returns at once when the signal aborts. */
  delay?(durationMs: number, signal: AbortSignal): Promise<void>;
}

/** What a backend is asked for, as far as it decides who may be. */
export type CandidateQuery = Pick<ModelRequest, "model" | "operation" | "goesOn" | "foreignFile" | "onlyAt"> &
  AskedMedia;

/** A backend that a request may be sent to, as far as this process knows. */
interface Entered extends Pick<Admitted, "permit" | "slot"> {
  name: string;
}

/** How long a request waits for requests that try its backend after failures, and how many may wait in all. */
const MAX_TRIAL_WAIT_MS = 5_000;

/** How many backends one choice asks for a token, where another process or Redis has to be asked for it. */
const MAX_CHOICES = 16;

export const MAX_TRIAL_WAITERS = 256;

export type Candidates = ReturnType<typeof createCandidates>;

export function createCandidates(parts: CandidatesParts) {
  const { watch, strategy, circuits, media, limits, turns, prefixes, now, random, delay = abortableDelay } = parts;
  const router = createRouter({ strategy, circuits, limits });
  const panicRouter = createRouter({ strategy, limits, circuits: { allows: circuits.allowsInPanic } });
  const narrowed = createNarrowing();
  let trialWaiters = 0;

  /** With the backends alone that the request may be sent to. */
  function boardFor({ onlyAt }: Pick<ModelRequest, "onlyAt">): BackendBoard {
    return onlyAt === undefined ? watch.board : narrowed(watch.board, onlyAt);
  }

  /** The board is read again for every attempt: a backend that has gone down since is not asked again. */
  function candidatesFor(asked: CandidateQuery): readonly BackendEntry[] {
    const { operation, model, goesOn, foreignFile } = asked;
    const serving = fitting(asked);
    const candidates =
      foreignFile === undefined ? serving : serving.filter(({ backend }) => mayHoldFiles(backend, operation));
    return goesOn ? candidates.filter(({ backend }) => goesOnExactly(backend, operation, model)) : candidates;
  }

  function fitting(asked: CandidateQuery): readonly BackendEntry[] {
    const serving = boardFor(asked).candidates(asked.model);
    // Of most models nothing is known that stands against anything, and nothing is to be looked for in the request.
    return media === undefined || !media.isAnyKnown(serving, asked.model)
      ? serving
      : media.fitting(serving, asked, (entry) => router.mayAsk(entry, asked.operation));
  }

  function withOperation(asked: CandidateQuery): BackendEntry[] {
    return fitting(asked).filter((entry) => hasOperation(entry, asked.operation));
  }

  /** The right to send one request to a backend: a permit of its circuit, and a token of its limit if that is here. */
  function admitNow(backendName: string, inPanic = false): Permit | undefined {
    const permit = circuits.acquire(backendName, inPanic);
    if (permit === undefined || limits.takesLater || limits.takeBackend(backendName)) return permit;
    permit.settle("neutral");
    return undefined;
  }

  function isFinal({ permit, slot }: Pick<Admitted, "permit" | "slot">): boolean {
    return permit.confirmed === undefined && !limits.takesLater && (slot !== undefined || turns === undefined);
  }

  /**
   * Whether those agree who are not here: its slots, its circuit, and its limit. If not, what it has is given back.
   * @param ask - undefined: it needs no slot, or has one
   */
  async function isConfirmed(admitted: Entered, ask: SlotQuery | undefined): Promise<boolean> {
    const { name, permit } = admitted;
    let isTaken = false;
    try {
      if (ask !== undefined) {
        admitted.slot = await turns?.take(name, ask);
        if (admitted.slot === undefined) return false;
      }
      if (permit.confirmed !== undefined && !(await permit.confirmed)) return false;
      isTaken = !limits.takesLater || (await limits.takeBackend(name));
    } finally {
      if (!isTaken) {
        permit.settle("neutral");
        admitted.slot?.ended(undefined);
      }
    }
    return isTaken;
  }

  /** A choice that is not confirmed is given up for the next: from then on it is known that it has no room. */
  async function confirmed(
    first: Admitted,
    ask: SlotQuery | undefined,
    again: () => Admitted | undefined,
  ): Promise<Admitted | undefined> {
    let admitted: Admitted | undefined = first;
    for (let turn = 0; admitted !== undefined && turn < MAX_CHOICES; turn++) {
      const { entry, permit, slot } = admitted;
      const entered: Entered = { name: entry.backend.name, permit, slot };
      if (await isConfirmed(entered, slot === undefined ? ask : undefined)) return { ...admitted, slot: entered.slot };
      if (turn < MAX_CHOICES - 1) admitted = again();
    }
    return undefined;
  }

  /** A promise only where the request waits for a slot, or slots, limits of backends or circuits are kept elsewhere. */
  function choose(
    context: RequestContext,
    request: ModelRequest,
    tried: ReadonlySet<string>,
    chosenNow: typeof chooseNow = chooseNow,
  ): Admitted | undefined | Promise<Admitted | undefined> {
    const ask = turns?.ask(context, request);
    const admitted = chosenNow(context, request, tried, ask);
    if (admitted !== undefined && isFinal(admitted)) return admitted;
    if (admitted === undefined) return ask && inTurn(context, request, tried, chosenNow);
    const fromMs = now();
    return confirmed(admitted, ask, () => chosenNow(context, request, tried, ask))
      .finally(() => tellWait(context, "limits", fromMs))
      .then((found) => found ?? (ask && inTurn(context, request, tried, chosenNow)));
  }

  /** Waits for a slot at one of the backends that could be asked. Undefined: there is none, or no more. */
  async function inTurn(
    context: RequestContext,
    request: ModelRequest,
    tried: ReadonlySet<string>,
    chosenNow: typeof chooseNow,
  ): Promise<Admitted | undefined> {
    const names = () => router.open(candidatesFor(request), request, tried);
    for (let turn = 0; turn < MAX_CHOICES && names().length > 0; turn++) {
      const slot = await turns?.next(context, request, names);
      if (slot === undefined) return undefined;
      const admitted = chosenNow(context, request, tried, slot);
      if (admitted === undefined) slot.ended(undefined);
      else if (isFinal(admitted)) return admitted;
      else {
        const found = await confirmed(admitted, undefined, () => undefined);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  }

  /** Those that only their circuits hold back, where these hold back every candidate, and that this request has not tried. */
  function heldBack(request: ModelRequest, tried: ReadonlySet<string>): BackendEntry[] {
    const able = candidatesFor(request).filter((entry) => hasOperation(entry, request.operation));
    if (able.some(({ backend }) => circuits.allows(backend.name))) return [];
    return able.filter(({ backend }) => !tried.has(backend.name) && circuits.allowsInPanic(backend.name));
  }

  /** A backend whose circuit is open is tried rather than refusing the request. */
  function panicNow(
    context: RequestContext,
    request: ModelRequest,
    tried: ReadonlySet<string>,
    by: SlotQuery | BackendSlot | undefined,
  ): Admitted | undefined {
    const entries = heldBack(request, tried);
    if (entries.length === 0) return undefined;
    const admitted = chooseOf(panicRouter, entries, context, request, tried, by, true);
    return admitted && { ...admitted, inPanic: true };
  }

  /** A wait is a step of the story where anybody could notice it. */
  function tellWait({ record }: RequestContext, reason: string, fromMs: number): void {
    const durationMs = now() - fromMs;
    if (durationMs >= 1) record.add({ kind: "wait", atMs: record.sinceStartMs - durationMs, durationMs, reason });
  }

  /** @param by - what it asks of the queue, or the slot that it has had from it; undefined: nothing waits for slots */
  function chooseNow(
    context: RequestContext,
    request: ModelRequest,
    tried: ReadonlySet<string>,
    by: SlotQuery | BackendSlot | undefined,
  ): Admitted | undefined {
    return chooseOf(router, candidatesFor(request), context, request, tried, by, false);
  }

  function chooseOf(
    of: typeof router,
    entries: readonly BackendEntry[],
    context: RequestContext,
    request: ModelRequest,
    tried: ReadonlySet<string>,
    by: SlotQuery | BackendSlot | undefined,
    inPanic: boolean,
  ): Admitted | undefined {
    const { isKept } = context.record;
    const query = queryOf(context, request, tried);
    const admit = (backendName: string) => admitNow(backendName, inPanic);
    if (by === undefined) return of.choose(entries, request, tried, query, admit, isKept);
    if ("ended" in by) {
      query.hasRoom = (backendName) => backendName === by.backend;
      const admitted = of.choose(entries, request, tried, query, admit, isKept);
      if (admitted !== undefined) admitted.slot = by;
      return admitted;
    }
    query.hasRoom = (backendName) => turns?.hasRoom(backendName, by) === true;
    const admitted = of.choose(entries, request, tried, query, admit, isKept);
    if (admitted !== undefined && turns?.takesLater === false) {
      admitted.slot = turns.take(admitted.entry.backend.name, by) as BackendSlot;
    }
    return admitted;
  }

  function queryOf(context: RequestContext, request: ModelRequest, tried: ReadonlySet<string>): SelectionQuery {
    return {
      sessionKey: () => sessionKey(context, request),
      random,
      nowMs: now(),
      isRetry: tried.size > 0,
      prefixAt: prefixes && ((backendName) => prefixes.at(request, backendName)),
    };
  }

  /** None when a circuit would let the request through: then a rate limit refuses it, and says until when. */
  function trialEnds(request: ModelRequest): Promise<void>[] {
    const names = withOperation(request).map(({ backend }) => backend.name);
    if (names.some((name) => circuits.allows(name))) return [];
    return names.map((name) => circuits.trialEnd(name)).filter((end) => end !== undefined);
  }

  return {
    choose,

    /** The same right for one that is chosen already. */
    async admit(
      context: RequestContext,
      request: ModelRequest,
      name: string,
    ): Promise<Pick<Admitted, "permit" | "slot"> | undefined> {
      const permit = admitNow(name);
      if (permit === undefined) return undefined;
      const admitted: Entered = { name, permit };
      const ask = turns?.ask(context, request);
      return (await isConfirmed(admitted, ask)) ? admitted : undefined;
    },

    /** Those that could be asked, tried or not. */
    askable(request: CandidateQuery & Pick<ModelRequest, "refusedBy">): BackendEntry[] {
      const { operation, refusedBy } = request;
      return candidatesFor(request).filter(
        (entry) => !refusedBy?.has(entry.backend.name) && router.mayAsk(entry, operation),
      );
    },

    /** A model without a candidate: waits for the first checks, and asks for a model that seems unknown. */
    async chooseCold(context: RequestContext, request: ModelRequest): Promise<Admitted | undefined> {
      const { signal } = context.client;
      if (boardFor(request).candidates(request.model).length > 0) return undefined;
      let fromMs = now();
      await orLeft(watch.firstChecks, signal);
      tellWait(context, "first_checks", fromMs);
      const admitted = await choose(context, request, request.avoid);
      if (admitted !== undefined || !boardFor(request).entries.some((entry) => entry.available)) return admitted;
      fromMs = now();
      await orLeft(watch.refreshModels(), signal);
      tellWait(context, "model_refresh", fromMs);
      return choose(context, request, request.avoid);
    },

    heldBack,

    /**
     * A choice when only failing backends are left: one that the panic rule lets through, else one that is being tried, as
     * soon as its trial is over. Undefined when there is nothing to wait for, or none of it helped.
     */
    async chooseAmongFailing(
      context: RequestContext,
      request: ModelRequest,
      tried: ReadonlySet<string>,
      deadlineMs: number,
    ): Promise<Admitted | undefined> {
      const untilMs = Math.min(now() + MAX_TRIAL_WAIT_MS, deadlineMs);
      const eitherNow: typeof chooseNow = (...asked) => chooseNow(...asked) ?? panicNow(...asked);
      for (;;) {
        // Between a choice and a look at the trials nothing may be awaited: a trial that ends meanwhile would be missed.
        const choice = choose(context, request, tried, eitherNow);
        const admitted = choice instanceof Promise ? await choice : choice;
        if (admitted !== undefined) return admitted;
        const ends = trialEnds(request);
        const leftMs = untilMs - now();
        if (ends.length === 0 || leftMs <= 0 || trialWaiters >= MAX_TRIAL_WAITERS) return undefined;
        const ended = new AbortController();
        void Promise.race(ends).then(() => ended.abort());
        const fromMs = now();
        trialWaiters++;
        try {
          await delay(leftMs, AbortSignal.any([context.client.signal, ended.signal]));
        } finally {
          trialWaiters--;
        }
        tellWait(context, "trial", fromMs);
        if (context.client.signal.aborted) throw clientLeft();
      }
    },

    refusal({ caller }: RequestContext, request: ModelRequest): Error {
      const board = boardFor(request);
      const lacking = media?.refusal(board.serving(request.model), request);
      if (lacking !== undefined) return lacking;
      const willing = withOperation(request).filter(({ backend }) => circuits.allows(backend.name));
      const full = limits.backendRefusal(willing.map(({ backend }) => backend.name));
      if (willing.length > 0 && full !== undefined) return new RateLimitError(full);
      if (request.foreignFile !== undefined) {
        const isAway = candidatesFor(request).length === 0 && board.candidates(request.model).length > 0;
        if (isAway) throw noHolderError(board.serving(request.model), request, request.foreignFile);
      }
      const absenceOf = (name: string) => watch.absenceOf(name);
      const { model, operation } = request;
      return noBackendError({ board, circuits, absenceOf, model, operation, allowsModel: caller?.allowsModel });
    },
  };
}

/** Backends of the model can be asked, but none of them may hold the file that the request names. */
function noHolderError(
  serving: readonly BackendEntry[],
  { model, operation }: ModelRequest,
  param: string,
): GatewayError {
  if (!serving.some(({ backend }) => mayHoldFiles(backend, operation))) return unknownFile(param);
  const message = `${param}: the backends of the model '${model}' that may hold this file are not available now.`;
  return new GatewayError(ERRORS.allBackendsUnhealthy, message, { param });
}

/** Waits for work of which anybody may be glad, but not longer than the client does. */
async function orLeft(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  await orAborted(work, signal);
  if (signal.aborted) throw clientLeft();
}
