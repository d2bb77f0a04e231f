// The pipeline's side of the queue in front of the backends: what a request asks for, its wait, and what becomes of it.

import type { Caller } from "../access/caller.ts";
import type { Admission, BackendSlot, Granted, QueuePlace, SlotQuery } from "../admission/admission.ts";
import { QueueError } from "../admission/refusal.ts";
import type { BackendEntry } from "../backends/board.ts";
import { drawsPictures, writesText } from "../backends/operations.ts";
import type { AdmissionSettings } from "../config/sections/admission.ts";
import { clientLeft } from "../errors/gateway-error.ts";
import { usualTokensOfBody } from "../generation/token-count.ts";
import { USUAL_BYTES_PER_TOKEN } from "../generation/token-facts.ts";
import type { Eventually } from "../lib/eventually.ts";
import { getOrMake } from "../lib/get-or-make.ts";
import type { RequestBody } from "../lib/request-body.ts";
import { isPictureBase64 } from "../media/media-types.ts";
import type { AnswerAverages } from "./answer-averages.ts";
import type { BackendWatch, RequestContext } from "./context.ts";
import type { ModelRequest } from "./model-request.ts";
import { queueClassOf } from "./queue-class.ts";
import { askedOutput, UNKNOWN_OUTPUT } from "./spending.ts";

interface TurnsParts {
  admission: Admission;
  averages: Pick<AnswerAverages, "of">;
  watch: Pick<BackendWatch, "board">;
  now(): number;
  /** A request has had its turn after a wait, in milliseconds. */
  waited(className: string, durationMs: number): void;
  shed(className: string, reason: string): void;
}

/** Bodies up to this size are counted by their bytes. */
const SMALL_BYTES = 4_096;

/** How often it is looked which backends the requests that wait could be sent to now. */
const LOOK_MS = 250;

interface Watched {
  waiting: QueuePlace;
  /** Backends that could be asked now. */
  names(): readonly string[];
  told: string;
  /** No backend can be asked any more. */
  giveUp(): void;
}

export type Turns = ReturnType<typeof createTurns>;

export function createTurns({ admission, averages, watch, now, waited, shed }: TurnsParts) {
  const groups = new WeakMap<readonly BackendEntry[], string>();
  const watched = new Set<Watched>();
  const tenants = createTenants();
  let timer: Timer | undefined;

  function look(): void {
    for (const one of watched) {
      const names = one.names();
      const told = names.join("\n");
      if (told === one.told) continue;
      one.told = told;
      if (names.length === 0) one.giveUp();
      else one.waiting.mayUse(names);
    }
  }

  function watchOver(one: Watched): () => void {
    watched.add(one);
    timer ??= setInterval(look, LOOK_MS);
    return () => {
      watched.delete(one);
      if (watched.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  }

  /** The backends that serve a model, as one text. */
  function groupOf(model: string): string {
    const serving = watch.board.serving(model);
    let group = groups.get(serving);
    if (group === undefined) {
      group = serving.map(({ backend }) => backend.name).join("\n");
      groups.set(serving, group);
    }
    return group;
  }

  function ask(context: RequestContext, request: ModelRequest): SlotQuery {
    const { settings, caller, record } = context;
    const { model, operation, body, choices } = request;
    const { queue } = settings.admission;
    const className = queueClassOf(context, request);
    const longestMs = queue.classes[className]?.max_wait ?? queue.max_wait;
    return {
      group: groupOf(model),
      model,
      class: className,
      tenant: tenants.of(caller, queue.fair_by),
      inputTokens: inputTokensOf(body),
      outputTokens: writesText(operation) && !drawsPictures(operation) ? expectedOutput(request) * choices : 0,
      ageMs: record.sinceStartMs,
      patienceMs: Math.max(0, longestMs - record.queuedMs),
      goesFirst: request.takesOver === true,
    };
  }

  function expectedOutput({ body, operation, model }: ModelRequest): number {
    const usual = averages.of(model);
    return Math.min(askedOutput(body.value, operation) ?? Number.POSITIVE_INFINITY, usual ?? UNKNOWN_OUTPUT);
  }

  /** Undefined: no backend can be asked any more, or the client has left. */
  async function granted(
    { client }: RequestContext,
    asked: SlotQuery,
    names: () => readonly string[],
  ): Promise<Granted | undefined> {
    const backends = names();
    const { promise: over, resolve: giveUp } = Promise.withResolvers<undefined>();
    const waiting = admission.wait(asked, backends);
    const unwatch = watchOver({ waiting, names, told: backends.join("\n"), giveUp: () => giveUp(undefined) });
    const { signal } = client;
    const left = () => giveUp(undefined);
    signal.addEventListener("abort", left);
    if (signal.aborted) left();
    try {
      const outcome = await new Promise<Granted | undefined>((resolve, reject) => {
        void over.then(resolve);
        waiting.granted.then(resolve, reject);
      });
      if (outcome === undefined) waiting.leave();
      return outcome;
    } finally {
      unwatch();
      signal.removeEventListener("abort", left);
    }
  }

  return {
    get takesLater(): boolean {
      return admission.takesLater;
    },
    ask,
    /** Whether a backend has a slot now, as far as this process knows. */
    hasRoom: (backend: string, { inputTokens, outputTokens }: SlotQuery): boolean =>
      admission.hasRoom(backend, inputTokens + outputTokens),
    take: (backend: string, asked: SlotQuery): Eventually<BackendSlot | undefined> => admission.take(backend, asked),
    /**
     * A slot at one of the backends, when it is the request's turn. Undefined: none of them can be asked any more. Throws a
     * QueueError where its turn does not come in time, and 408 when the client has left.
     */
    async next(
      context: RequestContext,
      request: ModelRequest,
      names: () => readonly string[],
    ): Promise<BackendSlot | undefined> {
      const { record, client } = context;
      const asked = ask(context, request);
      const fromMs = now();
      context.queue?.entered();
      const outcome = await granted(context, asked, names).finally(() => context.queue?.left());
      const durationMs = now() - fromMs;
      record.queuedMs += durationMs;
      if (durationMs >= 1) {
        const atMs = record.sinceStartMs - durationMs;
        record.add({ kind: "wait", atMs, durationMs, reason: "queue", class: asked.class });
      }
      if (client.signal.aborted) {
        outcome?.slot?.ended(undefined);
        throw clientLeft();
      }
      if (outcome?.shed !== undefined) {
        shed(asked.class, outcome.shed.reason);
        throw new QueueError(outcome.shed, request.model, asked.class);
      }
      if (outcome !== undefined) waited(asked.class, durationMs);
      return outcome?.slot;
    },
  };
}

type Levels = AdmissionSettings["queue"]["fair_by"];

const NO_CALLER: Readonly<object> = {};

/** The names of each caller at the levels of the tree, made once: each request asks for them. */
function createTenants() {
  let levels: Levels | undefined;
  let known = new WeakMap<object, readonly string[]>();
  return {
    of(caller: Caller | undefined, fairBy: Levels): readonly string[] {
      if (fairBy !== levels) {
        levels = fairBy;
        known = new WeakMap();
      }
      return getOrMake(known, caller ?? NO_CALLER, () => fairBy.map((level) => nameAt(level, caller) ?? ""));
    },
  };
}

function nameAt(level: Levels[number], caller: Caller | undefined): string | undefined {
  if (level === "organization") return caller?.organizationId;
  return level === "user" ? caller?.userId : caller?.keyId;
}

/** Small bodies are not worth a closer look: they hold no pictures, and what the backend counts is charged in the end. */
function inputTokensOf(body: RequestBody): number {
  const { length } = body.bytes();
  return length <= SMALL_BYTES
    ? Math.ceil(length / USUAL_BYTES_PER_TOKEN)
    : usualTokensOfBody(body.value, isPictureBase64);
}
