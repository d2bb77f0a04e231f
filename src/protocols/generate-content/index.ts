// The generateContent format: both halves, put together.

import { lossOfCitation, lossOfImage, lossOfItem, lossOfOtherCall } from "../../generation/answer-losses.ts";
import type { Format } from "../format.ts";
import type { BackendProtocol, ClientProtocol } from "../protocol.ts";
import { attachmentsOf, withFile } from "./attachments.ts";
import { errorBody, errorEvent } from "./client-errors.ts";
import { decodeError } from "./errors.ts";
import { contentJoin } from "./join.ts";
import { contentKept } from "./kept-answers.ts";
import { contentPassThrough } from "./pass-through.ts";
import { decodeRequest } from "./request-decoder.ts";
import { encodeRequest } from "./request-encoder.ts";
import { decodeResponse } from "./response-decoder.ts";
import { encodeResponse } from "./response-encoder.ts";
import { createStreamDecoder } from "./stream-decoder.ts";
import { createStreamEncoder } from "./stream-encoder.ts";
import { effortLevels } from "./thinking.ts";
import { offersSearch } from "./tool-decoder.ts";

export const generateContentClient: ClientProtocol = {
  name: "generate-content",
  decodeRequest,
  encodeResponse,
  streamEncoder: createStreamEncoder,
  errorBody,
  errorEvent,
  ownErrors: { schema: "ContentError", kind: "status" },
  attachments: attachmentsOf,
  withFile,
  offersSearch,
  settings: {
    temperature: ["generationConfig.temperature"],
    top_p: ["generationConfig.topP"],
    max_output_tokens: ["generationConfig.maxOutputTokens", "generation_config.max_output_tokens"],
    reasoning_effort: ["generationConfig.thinkingConfig.thinkingLevel"],
    seed: ["generationConfig.seed"],
  },
  withReply(body, said, message) {
    const { contents } = body;
    if (!Array.isArray(contents)) return undefined;
    const turn = (role: string, text: string) => ({ role, parts: [{ text }] });
    return { ...body, contents: [...(contents as unknown[]), turn("model", said), turn("user", message)] };
  },
  losses: {
    parts: {
      opaque: lossOfItem("generate-content"),
      image: lossOfImage(new Set(["base64"])),
      "tool-call": lossOfOtherCall,
    },
    citation: lossOfCitation("generate-content"),
  },
};

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
  client: generateContentClient,
  backend: generateContentBackend,
  passing: contentPassThrough,
  conversation: "contents",
  kept: contentKept,
  join: contentJoin,
} satisfies Format;
