// /admin/response-cache: counters of the response cache, and forgetting what it holds.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { done } from "../openapi/change-schemas.ts";
import { count, flag, list, orNull, type Schemas, shape, text } from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, queryParameter } from "../openapi/operation.ts";
import { ClearedHereOnly, type ResponseCache } from "../response-cache/cache.ts";
import { adminGroup, answer } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { queryOf } from "./request.ts";

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

const SCHEMAS: Schemas = {
  ResponseCacheStatistics: {
    oneOf: [
      shape({ enabled: { const: false } }),
      shape(
        {
          enabled: { const: true },
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
    ],
  },
  ResponseCacheCleared: shape({ ...done, removed: count }),
};

const endpoint = adminGroup("Observation", SCHEMAS);

export function responseCacheRoutes(parts: Pick<AdminParts, "cache">): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/response-cache", {
      id: "getResponseCache",
      summary: "Counters of the response cache",
      answers: [jsonAnswer("ResponseCacheStatistics", "The counters.")],
      async handle(call) {
        const cache = parts.cache();
        return answer(call, cache === undefined ? { enabled: false } : { enabled: true, ...(await cache.stats()) });
      },
    }),
    endpoint("DELETE /admin/response-cache", {
      id: "clearResponseCache",
      summary: "Forget kept answers",
      parameters: [queryParameter("model", "Only answers of this model.")],
      answers: [jsonAnswer("ResponseCacheCleared", "Forgotten.")],
      errors: [404, 503],
      async handle(call) {
        const cache = parts.cache();
        if (cache === undefined) throw new GatewayError(ERRORS.routeNotFound, "The response cache is switched off.");
        const model = queryOf(call).get("model") ?? undefined;
        const removed = await cleared(cache, model);
        const what = model === undefined ? "all answers" : `the answers of the model '${model}'`;
        return answer(call, { success: true, message: `Removed ${what} from the cache.`, removed });
      },
    }),
  ];
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
