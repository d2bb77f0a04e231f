// What the pipeline tells whoever records traces: spans of a request and of its attempts. Nobody does unless the
// configuration asks for it (telemetry.otlp).

import type { RequestContext, RequestSpans } from "./context.ts";

/** Its member changes with the configuration; a request asks for it once. */
export interface SpansInUse {
  recorder: SpanRecorder | undefined;
}

export interface SpanRecorder {
  /** Undefined where neither this request is recorded nor backends need to be told so. */
  begin(context: RequestContext): RequestSpans | undefined;
}
