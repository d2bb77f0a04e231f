// Section timeouts: limits of one exchange with a backend, and of reading a client's request.

import { z } from "zod";
import { positiveDuration } from "./fields.ts";
import { defineSection } from "./section.ts";

const modelTimeouts = z.strictObject({
  first_byte: positiveDuration().optional(),
  between_chunks: positiveDuration().optional(),
  request: positiveDuration().optional(),
});

export const timeoutsSection = defineSection({
  description: "Limits of one request, for plain answers and streams alike.",
  schema: z.strictObject({
    connect: positiveDuration().prefault("5s").describe("Until a connection to the backend stands."),
    first_byte: positiveDuration().prefault("120s").describe("Until the backend sends the first byte of its answer."),
    between_chunks: positiveDuration().prefault("60s").describe("Longest silence inside an answer."),
    request: positiveDuration().prefault("300s").describe("The whole request, retries included."),
    image_generation: positiveDuration()
      .prefault("180s")
      .describe("In place of first_byte, between_chunks and request where pictures are asked for."),
    request_body: positiveDuration().prefault("30s").describe("Until a client has sent its whole request (else 408)."),
    models: z.record(z.string(), modelTimeouts).default({}).describe("Overrides by model id."),
  }),
});
