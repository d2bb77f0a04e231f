// Requests and answers of the admin API for routes, as JSON Schema.

import { changed, entryDryRun } from "../openapi/change-schemas.ts";
import {
  anything,
  component,
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
  type ValueOf,
} from "../openapi/json-schema.ts";
import { entryPatch, entrySchema } from "../openapi/section-schemas.ts";

const interval = described(
  shape({ value: number, low: number, high: number }),
  "A value, and the bounds between which the true one lies in 95 of 100 cases.",
);
const mean = shape({ count, mean: number, deviation: described(number, "Standard deviation.") });

const RouteArmRecord = namedShape("RouteArm", {
  name: text,
  model: text,
  backend: orNull(text),
  weight: described(orNull(number), "Null of a mirror."),
  is_main: described(flag, "The target with the greatest weight, which the others are compared with."),
  is_mirror: flag,
  total_requests: described(count, "Since the start of the process."),
  requests: described(count, "Of the latest 1,000, by which all that follows is counted."),
  errors: count,
  error_share: interval,
  first_token_ms: orNull(mean),
  first_token_p95_ms: orNull(number),
  tokens_per_second: orNull(mean),
  cost: described(orNull(mean), "Of one request, where prices are known."),
  feedback: described(
    orNull(shape({ count, mean_score: number })),
    "What clients say of its answers (POST /v1/feedback).",
  ),
  compared: described(
    orNull(
      shape({
        error_share: interval,
        first_token_ms: orNull(interval),
        tokens_per_second: orNull(interval),
        cost: orNull(interval),
      }),
    ),
    "How much larger each value is than that of the main target; null of the main target itself, and while one has no requests.",
  ),
});
export type RouteArmRecord = ValueOf<typeof RouteArmRecord>;

export const RouteRecord = namedShape("Route", {
  name: text,
  sticky: text,
  on_failure: text,
  targets: described(anything, "As they are written, with defaults."),
  when: anything,
  rollback: orNull(anything),
  mirror: orNull(anything),
  arms: described(list(RouteArmRecord), "Every target by its name, and the mirror."),
});
export type RouteRecord = ValueOf<typeof RouteRecord>;

export const RouteList = namedShape("RouteList", { currency: text, routes: list(RouteRecord), total: count });

export const RouteChange = component("RouteChange", () =>
  described(entryPatch(entrySchema("routes")), "Fields of an entry of routes; null removes one."),
);
export const RouteChanged = namedShape("RouteChanged", { ...changed, route: RouteRecord }, entryDryRun);
export const RouteRemoved = namedShape("RouteRemoved", { ...changed, removed_route: RouteRecord }, entryDryRun);

export const ROUTE_SCHEMAS = schemasOf(RouteArmRecord, RouteList, RouteRecord, RouteChange, RouteChanged, RouteRemoved);
