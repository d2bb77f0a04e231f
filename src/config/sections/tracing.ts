// Section tracing: the id that follows a request (docs/api.md).

import { z } from "zod";
import { headerName } from "./fields.ts";
import { defineSection } from "./section.ts";

export const tracingSection = defineSection({
  isExtension: true,
  description: "The id that follows a request through logs, headers and backends.",
  schema: z.strictObject({
    enabled: z.boolean().default(true).describe("false: ids are neither taken from clients nor sent to backends."),
    w3c_trace_context: z.boolean().default(true).describe("Read and send traceparent and tracestate."),
    headers: z
      .strictObject({
        trace_id: headerName().default("X-Trace-ID"),
        request_id: headerName().default("X-Request-ID"),
        correlation_id: headerName().default("X-Correlation-ID"),
      })
      .prefault({}),
  }),
});
