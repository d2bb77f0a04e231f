// GET /admin/requests/{request_id}: what became of one request, step by step.

import type { Endpoint } from "../server/handler.ts";
import type { Route } from "../server/route-table.ts";
import { explainRequest, type RequestLog } from "../stats/request-log.ts";
import { adminRoute, answer } from "./endpoint.ts";

export interface RequestParts {
  requests: RequestLog;
}

export function requestRoutes({ requests }: RequestParts): Route<Endpoint>[] {
  return [adminRoute("GET", "/admin/requests/*", (call) => answer(call, explainRequest(requests, call.parameter)))];
}
