// GET /v1/me/usage and GET /v1/me/requests: what the holder of a key has used and asked, and nothing of anyone else.

import type { Caller } from "../access/caller.ts";
import { ownUsageView } from "../admin/costs-view.ts";
import { badParameter, groupsPattern, queryOf, refuseOtherParameters, timeText, WINDOW_NAMES } from "../admin/query.ts";
import { callerOf, ownRequests } from "../admin/request-query.ts";
import { SHOWN_OUTCOMES } from "../admin/request-schemas.ts";
import { requireStats } from "../admin/stats-view.ts";
import type { Clock } from "../lib/clock.ts";
import { TIME_FORMS } from "../lib/parse-time.ts";
import {
  count,
  described,
  flag,
  list,
  namedShape,
  number,
  oneOfTexts,
  orNull,
  schemasOf,
  shape,
  text,
  texts,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, type Parameter, queryParameter } from "../openapi/operation.ts";
import type { RequestSearch } from "../request-log/search.ts";
import type { Call } from "../server/endpoint.ts";
import type { StatsCollector } from "../stats/collector.ts";
import type { Stories } from "../stats/stories.ts";
import { OF_A_READER } from "./models.ts";

/** Those of the process that counts requests, and knows what became of them. */
interface OwnParts {
  collector: StatsCollector;
  stories: Stories;
  search: RequestSearch;
  clock: Clock;
}

const sums = {
  requests: count,
  prompt_tokens: count,
  completion_tokens: count,
  cached_tokens: count,
  cost: number,
};

/** What the rows of a key's own usage can be about. */
const OWN_GROUPS = ["model", "day"] as const;

export const OwnUsage = namedShape("OwnUsage", {
  by: list(oneOfTexts(...OWN_GROUPS)),
  currency: text,
  unpriced_models: described(texts, "Models whose tokens have no price, so that their cost is 0."),
  since: orNull(time),
  until: orNull(time),
  total: shape(sums),
  rows: list(shape(sums, { model_id: text, day: text })),
});
export type OwnUsage = ValueOf<typeof OwnUsage>;

const attempt = shape({
  model: text,
  outcome: oneOfTexts("succeeded", "failed", "running"),
  failure: orNull(text),
  status: orNull(count),
  duration_ms: orNull(number),
});

const request = shape({
  id: described(text, "As in X-Signalbox-Request-ID."),
  request_id: text,
  started_at: time,
  finished: flag,
  outcome: oneOfTexts(...SHOWN_OUTCOMES),
  operation: text,
  model: text,
  answered_by: described(orNull(text), "The model that stood in."),
  route: described(orNull(text), "The route that was asked for."),
  arm: described(orNull(text), "The target of the route that was asked last."),
  stream: flag,
  status: orNull(count),
  code: described(orNull(text), "Of the error that it was answered with."),
  duration_ms: number,
  first_byte_ms: orNull(number),
  prompt_tokens: orNull(count),
  completion_tokens: orNull(count),
  cost: described(
    orNull(number),
    "By the prices of now, cached tokens at the full price; null where it is not known. /v1/me/usage has what was counted.",
  ),
  cached: described(flag, "Answered from the response cache."),
  attempts: list(attempt),
});

export const OwnRequests = namedShape("OwnRequests", {
  currency: text,
  requests: list(request),
  next_cursor: described(orNull(text), "For the next page; null: this is the last one."),
});
export type OwnRequests = ValueOf<typeof OwnRequests>;

const times: readonly Parameter[] = [
  queryParameter("window", "Left out: all that is kept.", oneOfTexts(...WINDOW_NAMES)),
  queryParameter("since", `In place of a window: ${TIME_FORMS}.`, timeText),
  queryParameter("until", "The same, exclusive.", timeText),
];

const usageParameters: readonly Parameter[] = [
  queryParameter("by", "What the rows are about; left out: model.", {
    ...text,
    pattern: groupsPattern(OWN_GROUPS, OWN_GROUPS.length),
  }),
  ...times,
];

const requestParameters: readonly Parameter[] = [
  queryParameter("model", "Asked for, or answering."),
  queryParameter("outcome", "How it ended.", oneOfTexts(...SHOWN_OUTCOMES)),
  ...times,
  queryParameter("limit", "Most requests, up to 100.", { type: "integer", minimum: 1, default: 50 }),
  queryParameter("cursor", "next_cursor of the page before."),
];

export function ownUsageRoutes(parts: () => OwnParts): DescribedEndpoint[] {
  const common = {
    method: "GET",
    tag: "Models",
    access: "any_key",
    schemas: schemasOf(OwnUsage, OwnRequests),
  } as const;
  return [
    {
      ...common,
      path: "/v1/me/usage",
      id: "getOwnUsage",
      summary: "The caller's own requests, tokens and costs",
      description: "By model, by day, or by both: the dearest first, days from the newest on. Counted by the hour.",
      parameters: usageParameters,
      answers: [jsonAnswer(OwnUsage, "The usage of this key, or of the user of this token.")],
      errors: [...OF_A_READER, 400, 404],
      handle(call) {
        const query = readQuery(call, usageParameters);
        const by = query.get("by")?.split(",") ?? ["model"];
        const isKnown = by.every((name) => (OWN_GROUPS as readonly string[]).includes(name));
        if (!isKnown || new Set(by).size !== by.length)
          throw badParameter("by", "model, day, or both with a comma between");
        const usage = ownUsageView(
          requireStats(parts().collector),
          keyIdOf(call),
          by as OwnUsage["by"][number][],
          query,
        );
        return Response.json(usage satisfies OwnUsage, { headers: call.headers });
      },
    },
    {
      ...common,
      path: "/v1/me/requests",
      id: "listOwnRequests",
      summary: "The caller's own latest requests, and what became of each",
      parameters: requestParameters,
      answers: [jsonAnswer(OwnRequests, "The requests of this key, or of the user of this token, the newest first.")],
      errors: [...OF_A_READER, 400, 503],
      async handle(call) {
        const query = readQuery(call, requestParameters);
        const { search, stories, clock, collector } = parts();
        const page = await ownRequests(search, stories, collector, keyIdOf(call), query, callerOf(call, clock));
        return Response.json(page satisfies OwnRequests, { headers: call.headers });
      },
    },
  ];
}

/** Who asks; the same for all tokens of one user. */
function keyIdOf({ context }: Call): string {
  return (context.caller as Caller).keyId;
}

function readQuery(call: Call, known: readonly Parameter[]): URLSearchParams {
  refuseOtherParameters(
    call,
    known.map(({ name }) => name),
  );
  return queryOf(call);
}
