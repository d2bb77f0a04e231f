// Every admin path. Until admin authentication is configured, only clients on this machine are answered.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { ResponseCache } from "../response-cache/cache.ts";
import type { Endpoint } from "../server/handler.ts";
import type { Route } from "../server/route-table.ts";

export interface AdminParts {
  /** The body of GET /admin/backends (specification, "Backend status"). */
  backendStatus(): unknown;
  /** Undefined while the response cache is off. */
  cache: ResponseCache | undefined;
}

export function adminRoutes({ backendStatus, cache }: AdminParts): Route<Endpoint>[] {
  return [
    {
      method: "GET",
      path: "/admin/backends",
      handler: { access: "loopback", handle: ({ headers }) => Response.json(backendStatus(), { headers }) },
    },
    {
      method: "GET",
      path: "/admin/response-cache",
      handler: {
        access: "loopback",
        handle: async ({ headers }) =>
          Response.json(cache === undefined ? { enabled: false } : { enabled: true, ...(await cache.stats()) }, {
            headers,
          }),
      },
    },
    {
      method: "DELETE",
      path: "/admin/response-cache",
      handler: {
        access: "loopback",
        async handle({ request, headers }) {
          if (cache === undefined) throw new GatewayError(ERRORS.routeNotFound, "The response cache is switched off.");
          const model = new URL(request.url).searchParams.get("model") ?? undefined;
          const removed = await cache.clear(model);
          const what = model === undefined ? "all answers" : `the answers of the model '${model}'`;
          return Response.json({ success: true, message: `Removed ${what} from the cache.`, removed }, { headers });
        },
      },
    },
  ];
}
