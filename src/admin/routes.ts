// Every admin path. Until admin authentication is configured, only clients on this machine are answered.

import type { Endpoint } from "../server/handler.ts";
import type { Route } from "../server/route-table.ts";

export interface AdminParts {
  /** The body of GET /admin/backends (specification, "Backend status"). */
  backendStatus(): unknown;
}

export function adminRoutes({ backendStatus }: AdminParts): Route<Endpoint>[] {
  return [
    {
      method: "GET",
      path: "/admin/backends",
      handler: { access: "loopback", handle: ({ headers }) => Response.json(backendStatus(), { headers }) },
    },
  ];
}
