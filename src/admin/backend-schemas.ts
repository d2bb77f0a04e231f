// Requests and answers of the admin API for backends, as JSON Schema.

import { BACKEND_KIND_NAMES } from "../names.ts";
import { changed, done, dryRun, madeFor } from "../openapi/change-schemas.ts";
import {
  anyObject,
  count,
  described,
  flag,
  list,
  number,
  oneOfTexts,
  open,
  orNull,
  ref,
  type Schemas,
  shape,
  strictRequest,
  text,
  texts,
  time,
} from "../openapi/json-schema.ts";
import { BACKEND_SCHEMA, entryPatch, entrySchema } from "../openapi/section-schemas.ts";

const circuit = oneOfTexts("closed", "open", "half_open");
const health = oneOfTexts("unknown", "ready", "warming_up", "down", "unhealthy");

export const BACKEND_SCHEMAS: Schemas = {
  BackendStatusList: shape({
    backends: list(ref("BackendStatus")),
    healthy_count: described(count, "Those that answer health checks."),
    askable_count: described(count, "Those that requests can reach."),
    total_count: count,
    summary: shape({
      total_models: count,
      total_requests: count,
      total_failures: count,
      average_response_time_ms: orNull(number),
    }),
  }),
  BackendStatus: shape({
    name: text,
    url: text,
    type: oneOfTexts(...BACKEND_KIND_NAMES),
    enabled: flag,
    phase: oneOfTexts("active", "draining"),
    drain_remaining_ms: orNull(count),
    is_healthy: flag,
    can_be_asked: described(flag, "Enabled, healthy or not checked yet, and not held back by its circuit."),
    state: health,
    circuit,
    consecutive_failures: count,
    consecutive_successes: count,
    last_check: orNull(time),
    last_error: orNull(text),
    response_time_ms: orNull(count),
    models: texts,
    weight: count,
    in_flight: count,
    total_requests: count,
    failed_requests: count,
  }),
  BackendRecord: described(
    open(
      {
        name: text,
        type: text,
        url: orNull(text),
        weight: count,
        models: texts,
        enabled: flag,
        api_key: described(orNull(text), "Masked."),
        health_status: oneOfTexts("unknown", "healthy", "warming_up", "unhealthy"),
        stats: shape({
          total_requests: count,
          failed_requests: count,
          average_latency_ms: orNull(number),
          last_used: orNull(time),
        }),
      },
      { health_check: anyObject },
    ),
    `A backend with its state; its other settings stand here too, see ${BACKEND_SCHEMA}.`,
  ),
  get BackendChange() {
    return described(
      entryPatch(entrySchema("backends")),
      `A merge patch of a ${BACKEND_SCHEMA}: null removes a setting.`,
    );
  },
  BackendChanged: shape({ ...changed, backend: ref("BackendRecord") }, dryRun),
  BackendRemoved: shape({ ...changed, removed_backend: ref(BACKEND_SCHEMA) }, dryRun),
  CircuitReset: shape({ ...done, previous_state: circuit }),
  WeightRequest: strictRequest({ weight: { type: "integer", minimum: 0, maximum: 100 } }, madeFor),
  WeightChanged: shape({ ...changed, previous_weight: count, new_weight: count }, dryRun),
  ModelsRequest: strictRequest(
    { models: texts },
    { append: described(flag, "Add to the models there are."), ...madeFor },
  ),
  ModelsChanged: shape({ ...changed, models: texts }, dryRun),
};
