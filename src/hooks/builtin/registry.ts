// The hooks that come with the gateway, by their names behind `builtin:`.

import type { BuiltinHook } from "../../config/sections/hooks.ts";
import injectionScore from "./injection-score.ts";
import jsonSchema from "./json-schema.ts";
import maxSize from "./max-size.ts";
import moderation from "./moderation.ts";
import redact from "./redact.ts";
import words from "./words.ts";

export const BUILTINS = {
  redact,
  words,
  json_schema: jsonSchema,
  max_size: maxSize,
  injection_score: injectionScore,
  moderation,
} as const satisfies Record<BuiltinHook, object>;
