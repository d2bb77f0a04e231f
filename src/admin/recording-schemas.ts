// What the admin API shows of recordings.

import {
  component,
  count,
  described,
  flag,
  list,
  number,
  oneOfTexts,
  orNull,
  shape,
  text,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { SHOWN_OUTCOMES } from "./request-schemas.ts";

const facts = {
  id: described(text, "That of the request, as in X-Signalbox-Request-ID."),
  at: time,
  operation: text,
  model: text,
  answered_by: described(orNull(text), "The model that stood in."),
  route: orNull(text),
  arm: orNull(text),
  backend: orNull(text),
  key_id: orNull(text),
  user_id: orNull(text),
  organization_id: orNull(text),
  stream: flag,
  status: count,
  outcome: oneOfTexts(...SHOWN_OUTCOMES),
  duration_ms: number,
  first_byte_ms: orNull(number),
  input_tokens: orNull(count),
  output_tokens: orNull(count),
  cost: number,
  dataset: described(orNull(text), "The data set that it was imported with; null: a client asked."),
};

export const RecordingRow = component("RecordingRow", shape(facts));
export type RecordingRow = ValueOf<typeof RecordingRow>;

export const RecordingList = component(
  "RecordingList",
  shape({
    enabled: described(flag, "Whether requests are recorded now."),
    currency: text,
    bytes: described(count, "Of all recordings together."),
    recordings: described(list(RecordingRow), "The newest first."),
    next_cursor: described(orNull(text), "For the next page; null: this is the last one."),
  }),
);
export type RecordingList = ValueOf<typeof RecordingList>;

export const ConversationPart = component(
  "ConversationPart",
  shape(
    {
      type: described(
        text,
        "text, reasoning, refusal, tool-call, tool-result, search-result, image, document, audio, video or opaque.",
      ),
    },
    {
      text,
      name: described(text, "Of a tool, or of a file."),
      call_id: text,
      media_type: text,
      url: described(text, "Of media: an address, or the content as a data URL."),
      is_error: flag,
    },
  ),
);
export type ConversationPart = ValueOf<typeof ConversationPart>;

const message = shape({ role: oneOfTexts("system", "user", "assistant"), parts: list(ConversationPart) });

export const RecordedConversation = component(
  "RecordedConversation",
  shape({
    messages: described(list(message), "What was sent, the instructions first."),
    tools: described(list(text), "Names of the tools that the model was offered."),
    answer: orNull(
      shape({
        parts: list(ConversationPart),
        finish: described(orNull(text), "Why the model stopped; null: the answer is not complete."),
        error: orNull(text),
      }),
    ),
  }),
);
export type RecordedConversation = ValueOf<typeof RecordedConversation>;

const body = shape({
  content_type: text,
  bytes: described(count, "What was sent, before it was cut."),
  incomplete: described(
    orNull(oneOfTexts("cut", "too_long_to_redact", "not_redactable", "not_recorded")),
    "Why it is not all that was sent.",
  ),
  text: described(orNull(text), "Null where it is no text."),
  base64: described(orNull(text), "Where it is no text."),
});

export const Recording = component(
  "Recording",
  shape({
    ...facts,
    path: described(text, "That was asked, without its query."),
    conversation: described(orNull(RecordedConversation), "Null of operations that are none."),
    request: body,
    answer: body,
  }),
);
export type Recording = ValueOf<typeof Recording>;

export const RecordingsDeleted = component("RecordingsDeleted", shape({ deleted: count }));
export type RecordingsDeleted = ValueOf<typeof RecordingsDeleted>;
