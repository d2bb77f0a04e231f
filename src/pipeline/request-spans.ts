// What the pipeline tells the recorder of traces: spans of a request and of its attempts. There is none unless the
// configuration asks for it (telemetry.otlp).

import type { RequestContext, RequestSpans } from "./context.ts";

/** Its member changes with the configuration; a request asks for it once. */
export interface SpansInUse {
  recorder: SpanRecorder | undefined;
}

export interface SpanRecorder {
  /** Undefined where neither this request is recorded nor backends need to know. */
  begin(context: RequestContext): RequestSpans | undefined;
}
