// /admin/kv-index: what is known of the KV caches of backends, and forgetting it.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { EventSourceView } from "../kv-index/event-source.ts";
import { done } from "../openapi/change-schemas.ts";
import {
  count,
  described,
  flag,
  list,
  namedShape,
  number,
  orNull,
  schemasOf,
  shape,
  text,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, queryParameter } from "../openapi/operation.ts";
import { adminGroup, answer, toTimestamp } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { queryOf } from "./query.ts";

export const KvIndexStatistics = namedShape("KvIndexStatistics", {
  enabled: flag,
  entries: described(count, "Blocks of prompts at backends."),
  max_entries: count,
  bytes: count,
  max_bytes: count,
  hits: described(count, "Choices that the index made, because a backend had enough of the prompt."),
  lookups: described(count, "Choices for which a prompt was looked up."),
  hit_rate: number,
  event_sources: list(
    shape({
      backend_name: text,
      connected: flag,
      events: count,
      dropped: described(count, "Events that were lost because more came than could be taken in."),
      last_event: orNull(time),
      last_error: described(orNull(text), "Why there was no connection the last time."),
    }),
  ),
  backends: list(
    shape({
      backend_name: text,
      entries: count,
      distrusted: described(
        flag,
        "Answers have contradicted its events, so that nothing is kept of its cache for a while.",
      ),
    }),
  ),
});
export type KvIndexStatistics = ValueOf<typeof KvIndexStatistics>;
const KvIndexCleared = namedShape("KvIndexCleared", { ...done, removed: count });

const SCHEMAS = schemasOf(KvIndexStatistics, KvIndexCleared);

const endpoint = adminGroup("Observation", SCHEMAS);

export function kvIndexRoutes(parts: Pick<AdminParts, "kvIndex" | "settings">): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/kv-index", {
      id: "getKvIndex",
      role: "viewer",
      summary: "What is known of the KV caches of backends",
      answers: [jsonAnswer(KvIndexStatistics, "The numbers.")],
      handle(call) {
        const index = parts.kvIndex();
        if (index === undefined) {
          const { max_entries } = parts.settings().kv_cache_index;
          return answer(call, { enabled: false, ...NOTHING, max_entries });
        }
        const { maxEntries, maxBytes, hitRate, eventSources, backends, ...counts } = index.stats();
        return answer(call, {
          enabled: true,
          ...counts,
          max_entries: maxEntries,
          max_bytes: maxBytes,
          hit_rate: hitRate,
          event_sources: eventSources.map(sourceRow),
          backends: backends.map(({ backend, ...row }) => ({ backend_name: backend, ...row })),
        });
      },
    }),
    endpoint("DELETE /admin/kv-index", {
      id: "clearKvIndex",
      role: "operator",
      summary: "Forget what is known of KV caches",
      parameters: [queryParameter("backend", "Only the cache of this backend.")],
      answers: [jsonAnswer(KvIndexCleared, "Forgotten.")],
      errors: [404],
      handle(call) {
        const index = parts.kvIndex();
        if (index === undefined) throw new GatewayError(ERRORS.routeNotFound, "The KV cache index is switched off.");
        const backend = queryOf(call).get("backend") ?? undefined;
        if (backend !== undefined && !parts.settings().backends.some(({ name }) => name === backend)) {
          const message = "There is no backend of this name; GET /admin/backends lists them.";
          throw new GatewayError(ERRORS.routeNotFound, message, { param: "backend" });
        }
        call.deed = { subject: backend };
        const removed = index.clear(backend);
        const what = backend === undefined ? "all caches" : `the cache of the backend '${backend}'`;
        return answer(call, { success: true, message: `Forgot what was known of ${what}.`, removed });
      },
    }),
  ];
}

const NOTHING = {
  entries: 0,
  bytes: 0,
  max_bytes: 0,
  hits: 0,
  lookups: 0,
  hit_rate: 0,
  event_sources: [],
  backends: [],
};

function sourceRow({ backend, lastEventMs, lastError, ...row }: EventSourceView) {
  return {
    backend_name: backend,
    ...row,
    last_event: lastEventMs === undefined ? null : toTimestamp(lastEventMs),
    last_error: lastError ?? null,
  };
}
