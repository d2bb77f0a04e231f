// Requests and answers of the admin API for backends, as JSON Schema.

import { BACKEND_KIND_NAMES } from "../names.ts";
import { changed, done, entryDryRun, madeFor } from "../openapi/change-schemas.ts";
import {
  anyObject,
  component,
  count,
  described,
  flag,
  list,
  namedShape,
  number,
  oneOfTexts,
  open,
  orNull,
  ref,
  schemasOf,
  shape,
  strictRequest,
  text,
  texts,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { BACKEND_SCHEMA, entryPatch, entrySchema } from "../openapi/section-schemas.ts";

const circuit = oneOfTexts("closed", "open", "half_open");
const health = oneOfTexts("unknown", "ready", "warming_up", "down", "unhealthy");

export const BackendStatus = namedShape("BackendStatus", {
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
  circuit_since: described(orNull(time), "When its circuit left the closed state; null while it is closed."),
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
});
export type BackendStatus = ValueOf<typeof BackendStatus>;
export const BackendStatusList = namedShape("BackendStatusList", {
  backends: list(BackendStatus),
  healthy_count: described(count, "Those that answer health checks."),
  askable_count: described(count, "Those that requests can reach."),
  total_count: count,
  summary: shape({
    total_models: count,
    total_requests: count,
    total_failures: count,
    average_response_time_ms: orNull(number),
  }),
});
export type BackendStatusList = ValueOf<typeof BackendStatusList>;
export const BackendRecord = component(
  "BackendRecord",
  described(
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
);
export type BackendRecord = ValueOf<typeof BackendRecord>;
export const BackendChange = component("BackendChange", () => {
  return described(
    entryPatch(entrySchema("backends")),
    `A merge patch of a ${BACKEND_SCHEMA}: null removes a setting.`,
  );
});
export const BackendChanged = namedShape("BackendChanged", { ...changed, backend: BackendRecord }, entryDryRun);
export const BackendRemoved = namedShape(
  "BackendRemoved",
  { ...changed, removed_backend: ref(BACKEND_SCHEMA) },
  entryDryRun,
);
export const CircuitReset = namedShape("CircuitReset", { ...done, previous_state: circuit });
export const WeightRequest = component("WeightRequest", strictRequest({ weight: { ...count, maximum: 100 } }, madeFor));
export const WeightChanged = namedShape(
  "WeightChanged",
  { ...changed, previous_weight: count, new_weight: count },
  entryDryRun,
);
export const ModelsRequest = component(
  "ModelsRequest",
  strictRequest({ models: texts }, { append: described(flag, "Add to the models there are."), ...madeFor }),
);
export const ModelsChanged = namedShape("ModelsChanged", { ...changed, models: texts }, entryDryRun);

export const BACKEND_SCHEMAS = schemasOf(
  BackendStatusList,
  BackendStatus,
  BackendRecord,
  BackendChange,
  BackendChanged,
  BackendRemoved,
  CircuitReset,
  WeightRequest,
  WeightChanged,
  ModelsRequest,
  ModelsChanged,
);
