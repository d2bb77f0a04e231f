// Section telemetry: where traces and metrics are sent to.

import { z } from "zod";
import { headerName, headerValue, positiveDuration } from "./fields.ts";
import { defineSection } from "./section.ts";

/** Without user, password, query and fragment: what is secret belongs into the headers. */
const ENDPOINT = /^https?:\/\/[^\s/@?#]+(\/[^\s@?#]*)?$/;
/** The exporter writes these itself. */
const OWN_HEADERS = ["content-type", "content-encoding", "content-length", "host", "connection", "transfer-encoding"];

const SHORTEST_INTERVAL_MS = 1_000;
const LONGEST_INTERVAL_MS = 60_000;

const otlp = z.strictObject({
  endpoint: z
    .string()
    .regex(ENDPOINT, 'expected an address such as "http://127.0.0.1:4318", without user, password and query')
    .optional()
    .describe("Base address of the receiver; /v1/traces and /v1/metrics are appended. Left out: nothing is sent."),
  headers: z
    .record(
      headerName().refine((name) => !OWN_HEADERS.includes(name.toLowerCase()), "is written by the gateway itself"),
      headerValue(),
    )
    .default({})
    .describe("Headers of every export, such as the key of a service."),
  protocol: z
    .enum(["http/protobuf", "http/json"], { error: "unknown; known are http/protobuf and http/json" })
    .default("http/protobuf")
    .describe("http/protobuf or http/json."),
  sampling_ratio: z
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe("Share of the traces that begin here; a client's traceparent decides for its own."),
  interval: positiveDuration()
    .refine((value) => value >= SHORTEST_INTERVAL_MS, "must be 1s or longer")
    .refine((value) => value <= LONGEST_INTERVAL_MS, "must be 60s or shorter")
    .prefault("60s")
    .describe("How often metrics are sent; 1s to 60s. Traces go within a second."),
});

export const telemetrySection = defineSection({
  isExtension: true,
  description: "Traces and metrics for a receiver of OpenTelemetry (OTLP).",
  schema: z.strictObject({
    record_user: z
      .boolean()
      .default(true)
      .describe(
        "Keep the end user that a request names (user, safety_identifier, metadata.user_id) with what became of it.",
      ),
    otlp: otlp.prefault({}),
  }),
  secretPaths: ["otlp.headers.*"],
  // None is accepted, but what is refused is shown.
  urlPaths: ["otlp.endpoint"],
  sentTo: ["otlp.endpoint"],
});
