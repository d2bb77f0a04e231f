// The generateContent format: its backend half, put together.

import type { BackendProtocol } from "../protocol.ts";
import { decodeError } from "./errors.ts";
import { type EncodingOptions, encodeRequest } from "./request-encoder.ts";
import { decodeResponse } from "./response-decoder.ts";
import { createStreamDecoder } from "./stream-decoder.ts";

export function createGenerateContentBackend(options: EncodingOptions = {}): BackendProtocol {
  return {
    name: "generate-content",
    encodeRequest: (request, target) => encodeRequest(request, target, options),
    decodeResponse,
    streamDecoder: createStreamDecoder,
    decodeError,
  };
}

export const generateContentBackend: BackendProtocol = createGenerateContentBackend();
