// The chat completions format: Signalbox as a server of it, and as a client of backends that speak it.

import type { BackendProtocol, ClientProtocol } from "../protocol.ts";
import { encodeErrorBody, encodeErrorEvent } from "../standard-error.ts";
import { decodeError } from "./errors.ts";
import { decodeRequest } from "./request-decoder.ts";
import { encodeRequest } from "./request-encoder.ts";
import { decodeResponse } from "./response-decoder.ts";
import { encodeResponse } from "./response-encoder.ts";
import { ChatStreamDecoder } from "./stream-decoder.ts";
import { ChatStreamEncoder } from "./stream-encoder.ts";

export { adaptChatBody } from "./quirks.ts";

export const chatClient: ClientProtocol = {
  name: "chat",
  decodeRequest,
  encodeResponse,
  streamEncoder: (context) => new ChatStreamEncoder(context),
  errorBody: encodeErrorBody,
  errorEvent: encodeErrorEvent,
};

export const chatBackend: BackendProtocol = {
  name: "chat",
  encodeRequest,
  decodeResponse,
  streamDecoder: () => new ChatStreamDecoder(),
  decodeError,
};
