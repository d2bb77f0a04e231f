// /admin/response-cache: counters of the response cache, and forgetting what it holds.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { ResponseCache } from "../response-cache/cache.ts";
import type { Call, Endpoint } from "../server/endpoint.ts";
import { adminRoute, answer } from "./endpoint.ts";
import { queryOf } from "./request.ts";

export interface ResponseCacheParts {
  /** The one that answers now; undefined while the response cache is off. */
  cache(): ResponseCache | undefined;
}

export function responseCacheRoutes(parts: ResponseCacheParts): Endpoint[] {
  return [
    adminRoute("GET", "/admin/response-cache", async (call) => {
      const cache = parts.cache();
      return answer(call, cache === undefined ? { enabled: false } : { enabled: true, ...(await cache.stats()) });
    }),
    adminRoute("DELETE", "/admin/response-cache", (call) => clear(call, parts), ["model"]),
  ];
}

async function clear(call: Call, parts: ResponseCacheParts): Promise<Response> {
  const cache = parts.cache();
  if (cache === undefined) throw new GatewayError(ERRORS.routeNotFound, "The response cache is switched off.");
  const model = queryOf(call).get("model") ?? undefined;
  const removed = await cache.clear(model);
  const what = model === undefined ? "all answers" : `the answers of the model '${model}'`;
  return answer(call, { success: true, message: `Removed ${what} from the cache.`, removed });
}
