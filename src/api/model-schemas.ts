// Health, model lists and errors of the public API as JSON Schema.

import { AMOUNT_NAMES } from "../budgets/amounts.ts";
import type { JsonSchema } from "../config/schema/schema-export.ts";
import { SERVICE_NAME } from "../names.ts";
import {
  anyObject,
  count,
  described,
  flag,
  integer,
  list,
  number,
  oneOfTexts,
  open,
  orNull,
  ref,
  type Schemas,
  shape,
  text,
  texts,
  time,
  unixTime,
} from "../openapi/json-schema.ts";

const service: JsonSchema = { const: SERVICE_NAME };

const modelMetadata = shape(
  {},
  {
    display_name: text,
    developer: text,
    summary: text,
    knowledge_cutoff: described(text, "Year and month."),
    available_until: described(text, "The day from which it is no longer served."),
    relative_speed: { type: "integer", minimum: 1, maximum: 5, description: "1 is slowest." },
    pricing: described(
      shape(
        {},
        {
          input_tokens: number,
          output_tokens: number,
          cache_read_tokens: number,
          cache_write_tokens: number,
          reasoning_tokens: number,
          image: number,
          audio_minute: number,
          batch_discount: number,
        },
      ),
      "Tokens per 1,000, pictures by the piece, sound by the minute.",
    ),
    limits: shape({}, { context_window: integer, max_output: integer }),
  },
);

const modelObject: JsonSchema = { const: "model" };

export const MODEL_SCHEMAS: Schemas = {
  Welcome: shape({
    service,
    version: text,
    description: text,
    links: { type: "object", additionalProperties: text },
    base_urls: { type: "object", additionalProperties: text },
  }),
  KeyOfCaller: shape({
    id: text,
    user: orNull(text),
    organization: orNull(text),
    scopes: texts,
    models: described(texts, "Models that it may use and that are served now."),
    expires_at: described(orNull(time), "Null: it has no end."),
    limits: shape(
      {},
      {
        requests_per_minute: described(count, "Of this key alone."),
        requests_per_second: described(count, "Of each key without a limit of its own."),
        burst: described(count, "Most requests at once."),
      },
    ),
    budgets: list(
      shape({
        id: text,
        window: text,
        models: described(orNull(texts), "null: all."),
        until: described(time, "When what is spent now begins to be forgotten."),
        limits: list(
          shape(
            { amount: oneOfTexts(...AMOUNT_NAMES), spent: number, limit: number, remaining: number },
            { currency: text },
          ),
        ),
      }),
    ),
  }),
  Health: shape({ status: { const: "healthy" }, service }),
  Readiness: shape({ status: { enum: ["ready", "not_ready"] }, service }, { reason: text }),
  ModelMetadata: modelMetadata,
  ModelList: shape({ object: { const: "list" }, data: list(ref("ModelListEntry")) }),
  ModelListEntry: shape(
    {
      id: text,
      object: modelObject,
      created: unixTime,
      owned_by: text,
      permission: { type: "array", maxItems: 0 },
      root: text,
      parent: { type: "null" },
    },
    { backends: described(texts, "Names of the backends that serve it."), metadata: ref("ModelMetadata") },
  ),
  Model: shape(
    {
      id: text,
      object: modelObject,
      created: unixTime,
      owned_by: text,
      available: described(flag, "Whether a backend that serves it can take requests now."),
    },
    { supported_methods: texts, features: texts, max_tokens: integer, metadata: ref("ModelMetadata") },
  ),
  MessagesModel: shape({
    id: text,
    type: modelObject,
    display_name: text,
    created_at: time,
    max_input_tokens: orNull(count),
    max_tokens: orNull(count),
  }),
  MessagesModelList: shape({
    data: list(ref("MessagesModel")),
    has_more: flag,
    first_id: orNull(text),
    last_id: orNull(text),
  }),
  Error: described(
    shape({
      error: open(
        { message: text, type: orNull(text) },
        {
          code: { type: ["string", "integer", "null"] },
          param: described(orNull(text), "The field at fault."),
          details: anyObject,
          request_id: described(text, "The same as in X-Request-ID; not in errors of backends."),
        },
      ),
    }),
    "An error of the gateway, or of a backend in the same shape.",
  ),
  MessagesError: shape(
    {
      type: { const: "error" },
      error: open({ type: text, message: text }),
    },
    { request_id: orNull(text) },
  ),
};
