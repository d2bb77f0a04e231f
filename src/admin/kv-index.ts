// /admin/kv-index: what is known of the KV caches of backends, and forgetting it.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { done } from "../openapi/change-schemas.ts";
import { count, described, list, nullable, type Schemas, shape, text } from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, queryParameter } from "../openapi/operation.ts";
import { adminGroup, answer, toTimestamp } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { queryOf } from "./request.ts";
