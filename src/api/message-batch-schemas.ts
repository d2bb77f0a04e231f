// Message batches as JSON Schema, in the shapes of Anthropic.

import {
  anyObject,
  constant,
  count,
  described,
  flag,
  list,
  namedShape,
  oneOf,
  oneOfTexts,
  open,
  orNull,
  ref,
  type Schemas,
  schemasOf,
  shape,
  text,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";

const moment = orNull(time);

export const MessageBatch = namedShape("MessageBatch", {
  id: text,
  type: constant("message_batch"),
  processing_status: oneOfTexts("in_progress", "canceling", "ended"),
  request_counts: shape({ processing: count, succeeded: count, errored: count, canceled: count, expired: count }),
  created_at: time,
  expires_at: time,
  cancel_initiated_at: moment,
  ended_at: moment,
  archived_at: described(moment, "Since then there are no results any more."),
  results_url: described(orNull(text), "Once the batch has ended."),
});
export type MessageBatch = ValueOf<typeof MessageBatch>;

export const MessageBatchList = namedShape("MessageBatchList", {
  data: list(MessageBatch),
  first_id: orNull(text),
  last_id: orNull(text),
  has_more: flag,
});
export type MessageBatchList = ValueOf<typeof MessageBatchList>;

export const DeletedMessageBatch = namedShape("DeletedMessageBatch", {
  id: text,
  type: constant("message_batch_deleted"),
});
export type DeletedMessageBatch = ValueOf<typeof DeletedMessageBatch>;

export const MESSAGE_BATCH_SCHEMAS: Schemas = {
  MessageBatchRequest: shape({
    requests: {
      ...list(shape({ custom_id: { ...text, pattern: "^[A-Za-z0-9_-]{1,64}$" }, params: anyObject })),
      minItems: 1,
    },
  }),
  MessageBatchResult: shape(
    {
      custom_id: text,
      result: oneOf(
        open({ type: constant("succeeded"), message: anyObject }),
        open({ type: constant("errored"), error: anyObject }),
        open({ type: oneOfTexts("canceled", "expired") }),
      ),
    },
    { asked_again: described(constant(true), "A crash had left its answer unknown.") },
  ),
  ...schemasOf(MessageBatch, MessageBatchList, DeletedMessageBatch),
};

export const messageBatchRequest = ref("MessageBatchRequest");
export const messageBatchResult = ref("MessageBatchResult");
