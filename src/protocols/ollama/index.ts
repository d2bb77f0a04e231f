// The Ollama format, for clients: conversations of /api/chat and prompts of /api/generate. There is no backend half: a request
// reaches Ollama's own servers as it came, and for clients of other formats they have chat completions.

import { lossOfCall } from "../../generation/answer-losses.ts";
import type { Format } from "../format.ts";
import type { ClientProtocol } from "../protocol.ts";
import { repliedMessages } from "../with-reply.ts";
import { errorBody, errorEvent } from "./errors.ts";
import { OLLAMA } from "./form.ts";
import { ollamaJoin } from "./join.ts";
import { ollamaKept } from "./kept-answers.ts";
import { ollamaPassThrough } from "./pass-through.ts";
import { decodeRequest } from "./request-decoder.ts";
import { encodeResponse } from "./response-encoder.ts";
import { OllamaStreamEncoder } from "./stream-encoder.ts";

const ollamaClient: ClientProtocol = {
  name: OLLAMA,
  decodeRequest,
  encodeResponse,
  streamEncoder: (context) => new OllamaStreamEncoder(context),
  errorBody,
  errorEvent,
  ownErrors: { schema: "OllamaError", kind: "text" },
  settings: {
    temperature: ["options.temperature"],
    top_p: ["options.top_p"],
    max_output_tokens: ["options.num_predict"],
    reasoning_effort: ["think"],
    seed: ["options.seed"],
  },
  withReply: repliedMessages,
  losses: {
    parts: {
      "tool-call": lossOfCall,
      "search-result": () => "answer.searches",
      opaque: () => "answer.items",
      audio: () => "answer.audio",
      image: () => "answer.images",
    },
    citation: () => "answer.citations",
  },
};

export const ollama = {
  client: ollamaClient,
  passing: ollamaPassThrough,
  kept: ollamaKept,
  join: ollamaJoin,
} satisfies Format;
