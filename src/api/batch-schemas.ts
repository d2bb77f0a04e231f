// Batches as JSON Schema, in the shapes of OpenAI.

import {
  anyObject,
  constant,
  count,
  described,
  flag,
  list,
  mapOf,
  namedShape,
  oneOfTexts,
  open,
  orNull,
  ref,
  type Schemas,
  schemasOf,
  shape,
  text,
  unixTime,
  type ValueOf,
} from "../openapi/json-schema.ts";

export const BATCH_ENDPOINTS = ["/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/v1/completions"] as const;

const moment = orNull(unixTime);

const batchError = shape({
  code: text,
  message: text,
  param: orNull(text),
  line: described(orNull(count), "Of the input file, counted from 1."),
});

export const BatchObject = namedShape("Batch", {
  id: text,
  object: constant("batch"),
  endpoint: oneOfTexts(...BATCH_ENDPOINTS),
  model: described(orNull(text), "Of the first line."),
  errors: orNull(shape({ object: constant("list"), data: list(batchError) })),
  input_file_id: text,
  completion_window: constant("24h"),
  status: oneOfTexts(
    "validating",
    "failed",
    "in_progress",
    "finalizing",
    "completed",
    "expired",
    "cancelling",
    "cancelled",
  ),
  output_file_id: orNull(text),
  error_file_id: orNull(text),
  created_at: unixTime,
  in_progress_at: moment,
  expires_at: unixTime,
  finalizing_at: moment,
  completed_at: moment,
  failed_at: moment,
  expired_at: moment,
  cancelling_at: moment,
  cancelled_at: moment,
  request_counts: shape({ total: count, completed: count, failed: count }),
  usage: shape({
    input_tokens: count,
    input_tokens_details: shape({ cached_tokens: count }),
    output_tokens: count,
    output_tokens_details: shape({ reasoning_tokens: count }),
    total_tokens: count,
  }),
  metadata: orNull(mapOf(text)),
});
export type BatchObject = ValueOf<typeof BatchObject>;

export const BatchList = namedShape("BatchList", {
  object: constant("list"),
  data: list(BatchObject),
  first_id: orNull(text),
  last_id: orNull(text),
  has_more: flag,
});
export type BatchList = ValueOf<typeof BatchList>;

export const BATCH_SCHEMAS: Schemas = {
  BatchRequest: open(
    {
      input_file_id: described(text, "A file with the purpose batch."),
      endpoint: oneOfTexts(...BATCH_ENDPOINTS),
      completion_window: constant("24h"),
    },
    {
      metadata: orNull(anyObject),
      output_expires_after: orNull(
        shape({ anchor: constant("created_at"), seconds: { type: "integer", minimum: 3600, maximum: 2_592_000 } }),
      ),
    },
  ),
  ...schemasOf(BatchObject, BatchList),
};

export const batchRequest = ref("BatchRequest");
