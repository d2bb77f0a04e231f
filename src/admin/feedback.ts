// /admin/feedback: what clients say of answers.

import {
  anyObject,
  component,
  count,
  described,
  list,
  number,
  orNull,
  schemasOf,
  shape,
  text,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, queryParameter } from "../openapi/operation.ts";
import type { FeedbackQuery } from "../recording/feedback-rows.ts";
import { adminGroup, answer } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { queryOf, readNumber } from "./query.ts";
import { inStore, openedRecordings } from "./recording-storage.ts";

const PAGE = { usual: 50, most: 1_000 };

const FILTERS = {
  request: "The gateway's own id of a request.",
  route: "The route that was asked for.",
  arm: "Its target that answered.",
  model: "That was asked for.",
  key: "Id of the caller's key.",
  user: "Id of the user.",
} as const satisfies Record<keyof FeedbackQuery, string>;

const FeedbackRecord = component(
  "FeedbackRecord",
  shape({
    request: text,
    at: time,
    key_id: orNull(text),
    user_id: orNull(text),
    model: text,
    route: orNull(text),
    arm: orNull(text),
    score: number,
    comment: orNull(text),
    metadata: orNull(anyObject),
  }),
);

export const FeedbackList = component(
  "FeedbackList",
  shape({
    feedback: described(list(FeedbackRecord), "The newest first."),
    arms: described(
      list(shape({ route: text, arm: text, count, mean_score: number })),
      "Of each target of a route, all that is kept.",
    ),
  }),
);

export type FeedbackList = ValueOf<typeof FeedbackList>;

const endpoint = adminGroup("Recordings", schemasOf(FeedbackRecord, FeedbackList));

export function feedbackAdminRoutes({ recordings }: Pick<AdminParts, "recordings">): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/feedback", {
      id: "listFeedback",
      role: "operator",
      summary: "What clients say of answers, and the mean score of each target of a route",
      parameters: [
        ...Object.entries(FILTERS).map(([name, description]) => queryParameter(name, description)),
        queryParameter("limit", "Most of them, up to 1,000.", { type: "integer", minimum: 1, default: PAGE.usual }),
      ],
      answers: [jsonAnswer(FeedbackList, "The feedback.")],
      errors: [503],
      async handle(call) {
        const query = queryOf(call);
        const limit = Math.min(readNumber(query, "limit", 1) ?? PAGE.usual, PAGE.most);
        const asked: FeedbackQuery = Object.fromEntries(
          Object.keys(FILTERS).map((name) => [name, query.get(name) ?? undefined]),
        );
        const store = await openedRecordings(recordings);
        if (store === undefined) return answer(call, { feedback: [], arms: [] });
        const found = inStore(() => store.feedback.list(asked, limit));
        const arms = inStore(store.feedback.counts);
        return answer(call, {
          feedback: found.map(({ keyId, userId, atMs, ...told }) => {
            return { ...told, at: new Date(atMs).toISOString(), key_id: keyId, user_id: userId };
          }),
          arms: arms.map(({ route, arm, count: rated, sum }) => ({
            route,
            arm,
            count: rated,
            mean_score: sum / rated,
          })),
        });
      },
    }),
  ];
}
