// The Converse format of Amazon Bedrock: its backend half. Nothing passes in it: no client speaks it.

import { ChunkWatch } from "../chunk-watch.ts";
import type { Format } from "../format.ts";
import type { BackendProtocol } from "../protocol.ts";
import { decodeError } from "./errors.ts";
import { rulesOf } from "./model-rules.ts";
import { effortLevels } from "./reasoning.ts";
import { encodeRequest } from "./request-encoder.ts";
import { decodeResponse } from "./response-decoder.ts";
import { createStreamDecoder } from "./stream-decoder.ts";

const converseBackend: BackendProtocol = {
  name: "converse",
  encodeRequest,
  decodeResponse,
  streamDecoder: createStreamDecoder,
  decodeError,
  inlines: ["image", "document"],
  effortLevels,
};

export const converse = {
  backend: converseBackend,
  passing: {
    goesOn: (model) => rulesOf(model).prefill,
    preamble: new Set(["messageStart"]),
    watch: (options) => new ChunkWatch(options),
  },
} satisfies Format;
