// GET /admin/requests: requests, by what one looks for; /admin/requests/groups: those that are alike, counted;
// /admin/requests/{id}: what became of one of them, step by step.

import { schemasOf } from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, pathParameter } from "../openapi/operation.ts";
import type { RequestSearch } from "../request-log/search.ts";
import { adminGroup, answer } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { queryOf } from "./query.ts";
import {
  callerOf,
  explainRequest,
  groupParameters,
  groupRequests,
  listParameters,
  listRequests,
} from "./request-query.ts";
import { RequestGroups, RequestStep, RequestStory, Requests } from "./request-schemas.ts";

export const requestId = pathParameter(
  "request_id",
  "From the header X-Signalbox-Request-ID of the answer, or from X-Request-ID: of several requests the newest.",
);

const SCHEMAS = schemasOf(RequestGroups, Requests, RequestStory, RequestStep);

const endpoint = adminGroup("Observation", SCHEMAS);

export function requestRoutes({
  search,
  stories,
  errors,
  clock,
}: Pick<AdminParts, "stories" | "errors" | "clock"> & { search: RequestSearch }): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/requests", {
      id: "listRequests",
      role: "viewer",
      summary: "Requests, those in memory and those on disk",
      parameters: listParameters,
      answers: [jsonAnswer(Requests, "The requests.")],
      errors: [503],
      handle: async (call) => answer(call, await listRequests(search, stories, queryOf(call), callerOf(call, clock))),
    }),
    endpoint("GET /admin/requests/groups", {
      id: "groupRequests",
      role: "viewer",
      summary: "Requests that are alike, counted",
      parameters: groupParameters,
      answers: [jsonAnswer(RequestGroups, "The groups, the largest first.")],
      errors: [503],
      handle: async (call) => answer(call, await groupRequests(search, queryOf(call), callerOf(call, clock))),
    }),
    endpoint("GET /admin/requests/{request_id...}", {
      id: "explainRequest",
      role: "viewer",
      summary: "What became of one request, step by step",
      parameters: [requestId],
      answers: [jsonAnswer(RequestStory, "The explanation.")],
      errors: [503],
      async handle(call) {
        const { request_id: id } = call.parameters;
        return answer(call, await explainRequest(search, stories, id, (ownId) => errors.byId(ownId)));
      },
    }),
  ];
}
