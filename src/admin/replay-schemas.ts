// What the admin API takes and shows of replays.

import {
  anyOf,
  component,
  count,
  described,
  flag,
  list,
  mapOf,
  number,
  oneOfTexts,
  orNull,
  shape,
  text,
  texts,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { FILTER_NAMES } from "./recording-query.ts";

const MOST_RUBRIC = 20_000;
const MOST_INSTRUCTIONS = 100_000;
const bounded = (maxLength: number) => ({ ...text, minLength: 1, maxLength });

export const ReplayRequest = component("ReplayRequest", {
  ...shape(
    {
      recordings: described(
        anyOf(text, texts, mapOf(text)),
        `An id, a list of ids, or a filter: an object of texts with the names ${FILTER_NAMES.join(", ")} and limit.`,
      ),
    },
    {
      model: described(bounded(256), "Asked in place of the model of each request."),
      route: described(bounded(256), "The same, of a route."),
      arm: described(bounded(256), "A target of this route, and what it sets."),
      prompt: described(
        bounded(1024),
        "A file of global_prompts.prompts_dir, which takes the place of the instructions.",
      ),
      instructions: described(bounded(MOST_INSTRUCTIONS), "In place of a file: the text itself."),
      key: described(
        bounded(256),
        "Id of the key as whose the requests are asked, with its budgets and limits; left out: without a key.",
      ),
      judge: described(
        { ...shape({ model: bounded(256), rubric: bounded(MOST_RUBRIC) }), additionalProperties: false },
        "A model that says which of both answers is better, by a rubric.",
      ),
    },
  ),
  additionalProperties: false,
});
export type ReplayRequest = ValueOf<typeof ReplayRequest>;

const answer = shape({
  request_id: text,
  status: count,
  text,
  tool_calls: list(shape({ name: text, arguments: text })),
  finish: orNull(text),
  error: orNull(text),
  backend: orNull(text),
  input_tokens: orNull(count),
  output_tokens: orNull(count),
  cost: number,
  first_byte_ms: orNull(number),
  duration_ms: number,
});

export const ReplayItemView = component(
  "ReplayItem",
  shape({
    recording: described(text, "Id of the recording."),
    asked_again: described(flag, "It was under way when the gateway ended, and was asked once more."),
    recorded: orNull(answer),
    replayed: described(orNull(answer), "Null: not asked, or it could not be."),
    reason: described(orNull(text), "Why it could not be asked."),
    identical: described(orNull(flag), "Whether text and calls are the same; null where the temperature is not 0."),
    judged: orNull(shape({ better: orNull(oneOfTexts("replayed", "recorded", "same")), reason: text })),
  }),
);
export type ReplayItemView = ValueOf<typeof ReplayItemView>;

const sums = shape({
  input_tokens: count,
  output_tokens: count,
  cost: number,
  first_byte_ms: described(orNull(number), "On average."),
  failed: count,
});

const facts = {
  id: text,
  at: time,
  status: described(
    oneOfTexts("running", "completed", "interrupted"),
    "interrupted: answers could not be kept. A replay that a restart breaks off goes on.",
  ),
  model: orNull(text),
  route: orNull(text),
  arm: orNull(text),
  prompt: orNull(text),
  key: orNull(text),
  judge: orNull(text),
  total: count,
  done: count,
};

export const ReplayRow = component("ReplayRow", shape(facts));
export type ReplayRow = ValueOf<typeof ReplayRow>;

export const ReplayList = component("ReplayList", shape({ replays: described(list(ReplayRow), "The newest first.") }));
export type ReplayList = ValueOf<typeof ReplayList>;

export const ReplayReport = component(
  "ReplayReport",
  shape({
    ...facts,
    instructions: described(orNull(text), "The text, where it was none of a file."),
    rubric: orNull(text),
    currency: text,
    identical: described(count, "Of those whose temperature is 0."),
    different: count,
    better: described(count, "The judge finds the replayed answer better."),
    worse: count,
    same: count,
    recorded: described(sums, "Of the requests that are done; those of recordings that were deleted since count on."),
    replayed: sums,
    items: described(list(ReplayItemView), "A page of the requests."),
    next_cursor: described(orNull(text), "For the next page; null: this is the last one."),
  }),
);
export type ReplayReport = ValueOf<typeof ReplayReport>;
