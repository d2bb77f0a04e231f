// Response headers that the OpenAPI document names.

import type { JsonSchema } from "../config/schema/schema-export.ts";
import { count, integer, oneOfTexts, text } from "./json-schema.ts";

interface Header {
  description: string;
  schema: JsonSchema;
}

export const HEADERS = {
  "X-Request-ID": { description: "Id of the request; the log, errors and explanations name it.", schema: text },
  "X-Signalbox-Request-ID": { description: "The same; the gateway's own, which no other request has.", schema: text },
  ETag: { description: "The version of the configuration, for If-Match; of a file, what it contains.", schema: text },
  Location: { description: "Where the browser goes on.", schema: text },
  "Accept-Ranges": { description: "bytes: Range is understood.", schema: text },
  "Content-Range": { description: "Which bytes these are, and of how many.", schema: text },
  "Content-Disposition": { description: "attachment, with the name of the file.", schema: text },
  "Retry-After": { description: "Seconds.", schema: integer },
  "X-RateLimit-Limit": { description: "Requests that the limit allows.", schema: count },
  "X-RateLimit-Remaining": { description: "Requests that are left.", schema: count },
  "X-RateLimit-Reset": { description: "When the limit is as if unused.", schema: integer },
  "Server-Timing": {
    description: "Milliseconds: gateway, queue (the wait for a slot), backend, and first-token of a stream.",
    schema: text,
  },
  "X-Signalbox-Backend": { description: "The backend of the last attempt.", schema: text },
  "X-Signalbox-Route": { description: "The route that was asked for.", schema: text },
  "X-Signalbox-Arm": { description: "The target of the route that answers.", schema: text },
  "X-Signalbox-Estimate": { description: "1: the number is an estimate.", schema: text },
  "X-Cache": { description: "Only while the response cache is on.", schema: oneOfTexts("HIT", "MISS", "BYPASS") },
  "X-Fallback-Used": { description: "true: another model has answered.", schema: text },
  "X-Original-Model": { description: "The model that was asked for.", schema: text },
  "X-Fallback-Model": { description: "The model that has answered.", schema: text },
  "X-Fallback-Reason": { description: "Such as error_code_429.", schema: text },
  "X-Fallback-Attempts": { description: "Models that were asked instead.", schema: count },
} satisfies Record<string, Header>;

/** Sent with every answer. */
export const COMMON_HEADERS: readonly (keyof typeof HEADERS)[] = ["X-Request-ID", "X-Signalbox-Request-ID"];

export const LIMIT_HEADERS: readonly (keyof typeof HEADERS)[] = [
  "Retry-After",
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
];

export const GENERATION_HEADERS: readonly (keyof typeof HEADERS)[] = [
  "Server-Timing",
  "X-Signalbox-Backend",
  "X-Signalbox-Route",
  "X-Signalbox-Arm",
  "X-Cache",
  "X-Fallback-Used",
  "X-Original-Model",
  "X-Fallback-Model",
  "X-Fallback-Reason",
  "X-Fallback-Attempts",
];
