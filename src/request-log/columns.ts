// What is known of every request on disk: what many requests have in common, numbers, and ids.

import type { AttemptStep, RequestRecord } from "../stats/request-record.ts";

export type Value = string | number | boolean | readonly string[] | undefined;

/** Members of a record that are the same for many requests. Names may be added. */
export const COMMON_FACTS = [
  ...(["operation", "model", "answeredBy", "stream", "status", "failure", "outcome", "code", "endedBy"] as const),
  ...(["backend", "keyId", "organizationId", "clientAddress", "target", "cache", "cacheReason"] as const),
  ...(["route", "arm", "routeReason", "vendorBatch"] as const),
];

type CommonFact = (typeof COMMON_FACTS)[number];

/** Facts that are the same for many requests, so that a chunk holds only a few different sets of them. */
export interface Common extends Pick<RequestRecord, CommonFact> {
  /** The end user, as the key or the request names them. */
  userId: string | undefined;
  attempts: number;
  /** Every backend that was asked, if there were several attempts. */
  backends: readonly string[] | undefined;
  /** Set for a plain attempt. */
  stepStatus: number | undefined;
  strategy: string | undefined;
  scoreMeans: string | undefined;
}

/** The last three are of a plain attempt; without stepAtUs the steps are apart. */
export const NUMBERS = [
  ...(["durationUs", "firstByteUs", "backendUs", "promptTokens", "completionTokens"] as const),
  ...(["stepAtUs", "stepFirstByteUs", "stepDurationUs"] as const),
];

type NumberName = (typeof NUMBERS)[number];
export type ColumnName = "id" | "requestId" | keyof Common | NumberName;

export function commonOf(story: RequestRecord, step = plainAttempt(story)): Common {
  const { ownAttempts: attempts, user: userId } = story;
  const facts = Object.fromEntries(COMMON_FACTS.map((name) => [name, story[name]])) as Pick<Common, CommonFact>;
  return {
    ...facts,
    userId,
    attempts,
    backends: attempts > 1 ? story.backends : undefined,
    stepStatus: step?.status,
    strategy: step?.strategy,
    scoreMeans: step?.scoreMeans,
  };
}

/** On the path of every request: without an object to compare with. Those with several attempts have little in common. */
export function isCommonOf(common: Common, story: RequestRecord, step: AttemptStep | undefined): boolean {
  return (
    common.model === story.model &&
    common.backend === story.backend &&
    common.keyId === story.keyId &&
    common.userId === story.user &&
    common.clientAddress === story.clientAddress &&
    common.status === story.status &&
    common.stream === story.stream &&
    common.operation === story.operation &&
    common.answeredBy === story.answeredBy &&
    common.route === story.route &&
    common.arm === story.arm &&
    common.routeReason === story.routeReason &&
    common.vendorBatch === story.vendorBatch &&
    common.organizationId === story.organizationId &&
    common.outcome === story.outcome &&
    common.failure === story.failure &&
    common.code === story.code &&
    common.endedBy === story.endedBy &&
    common.target === story.target &&
    common.cache === story.cache &&
    common.cacheReason === story.cacheReason &&
    common.stepStatus === step?.status &&
    common.strategy === step?.strategy &&
    common.scoreMeans === step?.scoreMeans &&
    common.backends === undefined &&
    common.attempts === story.ownAttempts &&
    common.attempts <= 1
  );
}

/** The only step, where it is an attempt of which the columns say all. */
export function plainAttempt({ onlyStep: step, backend, model, answeredBy }: RequestRecord): AttemptStep | undefined {
  if (step?.kind !== "attempt" || step.backend !== backend || step.model !== (answeredBy ?? model)) return undefined;
  const { candidates, failure, detail, retryAfterMs, inPanic } = step;
  const hasMore = candidates ?? failure ?? detail ?? retryAfterMs ?? inPanic;
  return hasMore === undefined ? step : undefined;
}

/** The members that plainAttempt() has looked at, and those that are kept. */
type KnownMember = "kind" | "atMs" | "backend" | "model" | "strategy" | "scoreMeans" | "candidates" | "firstByteMs";
type FurtherMember = "durationMs" | "status" | "failure" | "detail" | "retryAfterMs" | "inPanic";
/** Fails to compile when a step gets a member that would be lost on disk. */
true satisfies Exclude<keyof AttemptStep, KnownMember | FurtherMember> extends never ? true : never;

/** Writes in the order of NUMBERS. */
export function writeNumbersOf(
  story: RequestRecord,
  step: AttemptStep | undefined,
  into: Float64Array,
  at: number,
): void {
  into[at] = written(microseconds(story.durationMs ?? story.sinceStartMs));
  into[at + 1] = written(microseconds(story.firstByteMs));
  into[at + 2] = written(microseconds(story.backendMs));
  into[at + 3] = written(story.promptTokens);
  into[at + 4] = written(story.completionTokens);
  into[at + 5] = written(microseconds(step?.atMs));
  into[at + 6] = written(microseconds(step?.firstByteMs));
  into[at + 7] = written(microseconds(step?.durationMs));
}

/** Stands for a number that is missing. */
const NONE = -(2 ** 31);

function written(value: number | undefined): number {
  return value === undefined ? NONE : value;
}

export function readNumber(written: number | undefined): number | undefined {
  return written === NONE ? undefined : written;
}

/** Reads the columns of a story in memory. */
export function readerOf(story: RequestRecord): (name: ColumnName) => Value {
  const common = commonOf(story);
  return (name) => {
    if (name === "id" || name === "requestId") return story[name];
    if (name in common) return common[name as keyof Common];
    const numbers = new Float64Array(NUMBERS.length);
    writeNumbersOf(story, plainAttempt(story), numbers, 0);
    return readNumber(numbers[NUMBERS.indexOf(name as NumberName)]);
  };
}

export function microseconds(durationMs: number): number;
export function microseconds(durationMs: number | undefined): number | undefined;
export function microseconds(durationMs: number | undefined): number | undefined {
  return durationMs === undefined ? undefined : Math.round(durationMs * 1000);
}
