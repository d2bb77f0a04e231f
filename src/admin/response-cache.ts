// /admin/response-cache: counters of the response cache, and forgetting what it holds.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { done } from "../openapi/change-schemas.ts";
import {
  component,
  constant,
  count,
  flag,
  list,
  namedShape,
  oneOf,
  orNull,
  schemasOf,
  shape,
  text,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, queryParameter } from "../openapi/operation.ts";
import {
  type BucketStatistics,
  type CacheStatistics,
  ClearedHereOnly,
  type ResponseCache,
} from "../response-cache/cache.ts";
import { adminGroup, answer } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { queryOf } from "./query.ts";

/** Null where only a server could tell, and does not. */
const kept = orNull(count);

const BUCKET = shape({
  hits: count,
  misses: count,
  unusable: count,
  written: count,
  failures: count,
  dropped: count,
  queued: count,
  queued_bytes: count,
});

export const ResponseCacheStatistics = component(
  "ResponseCacheStatistics",
  oneOf(
    shape({ enabled: constant(false) }),
    shape(
      {
        enabled: constant(true),
        backend: text,
        capacity: kept,
        max_bytes: kept,
        entries: kept,
        bytes: kept,
        hits: count,
        misses: count,
        stores: count,
        evictions: kept,
        expirations: kept,
        models: list(shape({ model: text, hits: count, misses: count, stores: count, entries: kept, bytes: kept })),
      },
      { connected: flag, l2: BUCKET },
    ),
  ),
);
export type ResponseCacheStatistics = ValueOf<typeof ResponseCacheStatistics>;
const ResponseCacheCleared = namedShape("ResponseCacheCleared", { ...done, removed: count });

const SCHEMAS = schemasOf(ResponseCacheStatistics, ResponseCacheCleared);

const endpoint = adminGroup("Observation", SCHEMAS);

export function responseCacheRoutes(parts: Pick<AdminParts, "cache">): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/response-cache", {
      id: "getResponseCache",
      role: "viewer",
      summary: "Counters of the response cache",
      answers: [jsonAnswer(ResponseCacheStatistics, "The counters.")],
      async handle(call) {
        const statistics = await parts.cache()?.stats();
        return answer(call, statistics === undefined ? { enabled: false } : statisticsView(statistics));
      },
    }),
    endpoint("DELETE /admin/response-cache", {
      id: "clearResponseCache",
      role: "operator",
      summary: "Forget kept answers",
      parameters: [queryParameter("model", "Only answers of this model.")],
      answers: [jsonAnswer(ResponseCacheCleared, "Forgotten.")],
      errors: [404, 503],
      async handle(call) {
        const cache = parts.cache();
        if (cache === undefined) throw new GatewayError(ERRORS.routeNotFound, "The response cache is switched off.");
        const model = queryOf(call).get("model") ?? undefined;
        call.deed = { subject: model };
        const removed = await cleared(cache, model);
        const what = model === undefined ? "all answers" : `the answers of the model '${model}'`;
        return answer(call, { success: true, message: `Removed ${what} from the cache.`, removed });
      },
    }),
  ];
}

function statisticsView({ maxBytes, l2, ...counts }: CacheStatistics) {
  return { enabled: true, ...counts, max_bytes: maxBytes, ...(l2 !== undefined && { l2: bucketView(l2) }) } as const;
}

function bucketView({ queuedBytes, ...counts }: BucketStatistics) {
  return { ...counts, queued_bytes: queuedBytes };
}

async function cleared(cache: ResponseCache, model: string | undefined): Promise<number> {
  try {
    return await cache.clear(model);
  } catch (cause) {
    if (!(cause instanceof ClearedHereOnly)) throw cause;
    const message =
      "The answers are forgotten here, but not yet in the bucket or the Redis server that gateways share: it is away, and they " +
      "may be given again. Ask again when it is back.";
    throw new GatewayError(ERRORS.storageUnavailable, message, { cause });
  }
}
