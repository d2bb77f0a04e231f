// GET /admin/requests: the latest requests; GET /admin/requests/{id}: what became of one of them, step by step.

import type { Endpoint } from "../server/endpoint.ts";
import type { RequestLog } from "../stats/request-log.ts";
import { adminRoute, answer } from "./endpoint.ts";
import { queryOf } from "./request.ts";
import { explainRequest, listRequests, REQUEST_FILTERS } from "./request-view.ts";

export interface RequestParts {
  requests: RequestLog;
}

export function requestRoutes({ requests }: RequestParts): Endpoint[] {
  return [
    adminRoute(
      "GET",
      "/admin/requests",
      (call) => answer(call, listRequests(requests, queryOf(call))),
      REQUEST_FILTERS,
    ),
    adminRoute("GET", "/admin/requests/{request_id...}", (call) =>
      answer(call, explainRequest(requests, call.parameters.request_id)),
    ),
  ];
}
