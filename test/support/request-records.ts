// Records of requests as the steps of the pipeline leave them, for tests of what reads them.

import type { RequestContext } from "../../src/pipeline/context.ts";
import type { Outcome } from "../../src/stats/outcome.ts";
import { RequestRecord } from "../../src/stats/request-record.ts";
import type { Stories } from "../../src/stats/stories.ts";

type Facts = Partial<RequestRecord>;

/** What the end of a request says. */
export interface RequestEnd extends Facts {
  status: number;
  outcome: Outcome;
  durationMs: number;
}

/** Every record has an own id unless one is given. */
export function recordOf(facts: Facts = {}, now = () => facts.startedAtMs ?? 0): RequestRecord {
  const { id = crypto.randomUUID(), requestId = "r1", startedAtMs = now(), ...rest } = facts;
  return Object.assign(new RequestRecord(id, requestId, startedAtMs, now), rest);
}

/** Of a request that is over. */
export function finishedRecord({ status, outcome, durationMs, ...facts }: RequestEnd): RequestRecord {
  const record = recordOf({ isRead: true, isKept: true, ...facts });
  record.finish(status, outcome, durationMs);
  return record;
}

/** A request that was read, as the reporter begins its story. */
export function beginStory(stories: Stories, facts: Facts, now?: () => number): RequestRecord {
  const record = recordOf({ isRead: true, isKept: true, ...facts }, now);
  stories.begin(record);
  return record;
}

/** Its end, as the reporter writes it. */
export function endStory(
  stories: Stories,
  record: RequestRecord,
  { status, outcome, durationMs, promptTokens, completionTokens, ...facts }: RequestEnd,
): void {
  Object.assign(record, facts);
  record.finish(status, outcome, durationMs);
  record.promptTokens ??= promptTokens;
  record.completionTokens ??= completionTokens;
  stories.end(record);
}

/** What the pipeline has of a request besides its settings; members that a test needs are given. */
export function contextOf(record: RequestRecord, given: Partial<RequestContext>): RequestContext {
  return {
    id: record.requestId,
    method: "POST",
    path: "/v1/chat/completions",
    caller: undefined,
    clientHeaders: new Headers(),
    peerAddress: () => undefined,
    record,
    heldBytes: 0,
    spans: undefined,
    ...given,
  } as RequestContext;
}
