// The Messages format: both halves, put together.

import type { BackendProtocol, ClientProtocol } from "../protocol.ts";
import { decodeError, errorBody, errorEvent } from "./errors.ts";
import { decodeRequest } from "./request-decoder.ts";
import { encodeRequest } from "./request-encoder.ts";
import { decodeResponse } from "./response-decoder.ts";
import { encodeResponse } from "./response-encoder.ts";
import { createStreamDecoder } from "./stream-decoder.ts";
import { createStreamEncoder } from "./stream-encoder.ts";

export const messagesClient: ClientProtocol = {
  name: "messages",
  decodeRequest,
  encodeResponse,
  streamEncoder: createStreamEncoder,
  errorBody,
  errorEvent,
};

export const messagesBackend: BackendProtocol = {
  name: "messages",
  encodeRequest,
  decodeResponse,
  streamDecoder: createStreamDecoder,
  decodeError,
};
