// The text completions format, translated for backends that know only conversations. There is no backend half: a request
// reaches backends that speak the format as it came.

import type { ClientProtocol } from "../protocol.ts";
import { encodeErrorBody, encodeErrorEvent } from "../standard-error.ts";
import { decodeRequest } from "./request-decoder.ts";
import { encodeResponse } from "./response-encoder.ts";
import { CompletionStreamEncoder } from "./stream-encoder.ts";

export const completionsClient: ClientProtocol = {
  name: "completions",
  decodeRequest,
  encodeResponse,
  streamEncoder: (context) => new CompletionStreamEncoder(context),
  errorBody: encodeErrorBody,
  errorEvent: encodeErrorEvent,
};
