// GET /admin/events: what happens in the gateway, as it happens, for dashboards.

import { schemasOf } from "../openapi/json-schema.ts";
import type { DescribedEndpoint } from "../openapi/operation.ts";
import type { Administrator } from "../server/endpoint.ts";
import { adminGroup } from "./endpoint.ts";
import { createEventHub } from "./event-hub.ts";
import { AdminEvent } from "./event-schemas.ts";
import type { AdminParts } from "./parts.ts";

const SCHEMAS = schemasOf(AdminEvent);

const endpoint = adminGroup("Observation", SCHEMAS);

type EventsParts = Pick<AdminParts, "happenings" | "stories" | "store" | "clock" | "log">;

export function eventRoutes(parts: EventsParts): DescribedEndpoint[] {
  let hub: ReturnType<typeof createEventHub> | undefined;
  return [
    endpoint("GET /admin/events", {
      id: "followEvents",
      role: "viewer",
      summary: "What happens, as it happens",
      description:
        "Server-sent events, named request, health, circuit, budget, config and heartbeat: twice a second at most. Nothing is sent again: a new reader asks the other endpoints first. Readers that fall behind are dropped, and the stream ends with the sign-in.",
      answers: [{ status: 200, description: "The events, until the reader leaves.", events: AdminEvent }],
      errors: [503],
      handle({ request, headers, administrator }) {
        hub ??= createEventHub(parts);
        const body = request.method === "HEAD" ? null : hub.listen(administrator as Administrator);
        return new Response(body, {
          headers: {
            ...headers,
            "Content-Type": "text/event-stream; charset=utf-8",
            "Cache-Control": "no-store",
            "X-Accel-Buffering": "no",
          },
        });
      },
    }),
  ];
}
