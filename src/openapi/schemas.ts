// components.schemas of the OpenAPI document.

import type { JsonSchema } from "../config/schema/schema-export.ts";
import { BACKEND_SCHEMAS } from "./backend-schemas.ts";
import { CONFIGURATION_SCHEMAS } from "./configuration-schemas.ts";
import { GENERATION_SCHEMAS } from "./generation-schemas.ts";
import { KEY_SCHEMAS } from "./key-schemas.ts";
import { MODEL_SCHEMAS } from "./model-schemas.ts";
import { OBSERVATION_SCHEMAS } from "./observation-schemas.ts";
import { configSchemas } from "./section-schemas.ts";

export function componentSchemas(): Record<string, JsonSchema> {
  return {
    ...MODEL_SCHEMAS,
    ...GENERATION_SCHEMAS,
    ...CONFIGURATION_SCHEMAS,
    ...BACKEND_SCHEMAS,
    ...KEY_SCHEMAS,
    ...OBSERVATION_SCHEMAS,
    ...configSchemas(),
  };
}
