// The generateContent format: its backend half. Nothing passes in it: no client speaks it.

import { ChunkWatch } from "../chunk-watch.ts";
import type { Format } from "../format.ts";
import type { BackendProtocol } from "../protocol.ts";
import { decodeError } from "./errors.ts";
import { encodeRequest } from "./request-encoder.ts";
import { decodeResponse } from "./response-decoder.ts";
import { createStreamDecoder } from "./stream-decoder.ts";
import { effortLevels } from "./thinking.ts";

export const generateContentBackend: BackendProtocol = {
  name: "generate-content",
  encodeRequest,
  decodeResponse,
  streamDecoder: createStreamDecoder,
  decodeError,
  carriesSearch: true,
  effortLevels,
  signsCalls: true,
};

export const generateContent = {
  backend: generateContentBackend,
  passing: { preamble: new Set(["ping"]), watch: (options) => new ChunkWatch(options) },
} satisfies Format;
