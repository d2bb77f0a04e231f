// The generateContent format: its backend half. Nothing passes in it: no client speaks it.

import { ChunkWatch } from "../chunk-watch.ts";
import type { Format } from "../format.ts";
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
    carriesSearch: true,
    signsCalls: true,
  };
}

export const generateContentBackend: BackendProtocol = createGenerateContentBackend();

export const generateContent = {
  backend: generateContentBackend,
  passing: { preamble: new Set(["ping"]), watch: (options) => new ChunkWatch(options) },
} satisfies Format;
