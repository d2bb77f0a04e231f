// The Responses format as one thing: its client half and its backend half.

import type { BackendProtocol, ClientProtocol } from "../protocol.ts";
import { decodeError, errorBody, errorEvent } from "./errors.ts";
import { decodeRequest } from "./request-decoder.ts";
import { encodeRequest } from "./request-encoder.ts";
import { decodeResponse } from "./response-decoder.ts";
import { encodeResponse } from "./response-encoder.ts";
import { ResponsesStreamDecoder } from "./stream-decoder.ts";
import { ResponsesStreamEncoder } from "./stream-encoder.ts";

export const responsesClient: ClientProtocol = {
  name: "responses",
  decodeRequest,
  encodeResponse,
  streamEncoder: (context) => new ResponsesStreamEncoder(context),
  errorBody,
  errorEvent,
};

export const responsesBackend: BackendProtocol = {
  name: "responses",
  encodeRequest,
  decodeResponse,
  streamDecoder: () => new ResponsesStreamDecoder(),
  decodeError,
};
