// CORS: what a browser asks before it lets a page of another origin ask, and what makes answers readable to that page.

import type { PageRequest } from "../access/web-pages.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Answering } from "./endpoint.ts";
import { allowedMethods } from "./route-table.ts";

/** Seconds that a browser may keep the answer to a preflight. */
const MAX_AGE_SECONDS = 600;

/** Headers that scripts of other origins may read; "*" covers those of backends, such as openai-* and x-ratelimit-*. */
const EXPOSED = [
  "X-Request-ID",
  "X-Trace-ID",
  "X-Correlation-ID",
  "X-Signalbox-Backend",
  "X-Signalbox-Dropped",
  "X-Signalbox-Route",
  "X-Signalbox-Arm",
  "X-Signalbox-Estimate",
  "X-Signalbox-Request-ID",
  "X-Fallback-Used",
  "X-Original-Model",
  "X-Fallback-Model",
  "X-Fallback-Reason",
  "X-Fallback-Attempts",
  "X-Cache",
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
  "Retry-After",
  "Server-Timing",
  "x-should-retry",
  "*",
].join(", ");

/** Undefined where the request is no preflight, or where only administrators may ask. */
export function preflightEndpoint(
  request: Request,
  page: PageRequest,
  methods: ReadonlyMap<string, { access: string }>,
): Answering | undefined {
  const asked = request.headers;
  if (request.method !== "OPTIONS" || !asked.has("origin") || !asked.has("access-control-request-method")) {
    return undefined;
  }
  const isForPages = [...methods.values()].some(({ access }) => access !== "admin");
  if (!isForPages) return undefined;
  return {
    access: "open",
    handle({ headers }) {
      if (page.reader === undefined) {
        const message = page.refusal ?? "This origin is not in server.cors.allowed_origins.";
        throw new GatewayError(ERRORS.forbidden, message);
      }
      const allowedHeaders = asked.get("access-control-request-headers");
      const isPrivate = asked.get("access-control-request-private-network") === "true";
      return new Response(null, {
        status: 204,
        headers: {
          ...headers,
          Vary: "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
          "Access-Control-Allow-Methods": allowedMethods(methods).join(", "),
          ...(allowedHeaders !== null && { "Access-Control-Allow-Headers": allowedHeaders }),
          "Access-Control-Max-Age": String(MAX_AGE_SECONDS),
          ...(isPrivate && { "Access-Control-Allow-Private-Network": "true" }),
        },
      });
    },
  };
}

/** Lets pages of this origin read the answer. */
export function openToPages(reader: string, answer: Headers): void {
  answer.set("Access-Control-Allow-Origin", reader);
  answer.set("Access-Control-Expose-Headers", EXPOSED);
}
