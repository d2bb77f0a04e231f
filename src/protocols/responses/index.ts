// The Responses format as one thing: its client half and its backend half.

import { lossOfCitation, lossOfImage, lossOfItem, lossOfOtherCall } from "../../generation/answer-losses.ts";
import type { Format } from "../format.ts";
import type { BackendProtocol, ClientProtocol } from "../protocol.ts";
import { hasSearchTool } from "../search-tool.ts";
import { attachmentsOf, withFile } from "./attachments.ts";
import { decodeError, errorBody, errorEvent } from "./errors.ts";
import { responsesJoin } from "./join.ts";
import { responsesKept } from "./kept-answers.ts";
import { responsesPassThrough } from "./pass-through.ts";
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
  attachments: attachmentsOf,
  withFile,
  offersSearch: hasSearchTool,
  settings: {
    temperature: ["temperature"],
    top_p: ["top_p"],
    max_output_tokens: ["max_output_tokens"],
    reasoning_effort: ["reasoning.effort"],
  },
  withReply(body, said, message) {
    const { input } = body;
    const items: unknown = typeof input === "string" ? [{ role: "user", content: input }] : input;
    if (!Array.isArray(items)) return undefined;
    return {
      ...body,
      stream: false,
      input: [...items, { role: "assistant", content: said }, { role: "user", content: message }],
    };
  },
  losses: {
    parts: {
      "tool-call": lossOfOtherCall,
      opaque: lossOfItem("responses"),
      audio: () => "answer.audio",
      image: lossOfImage(new Set(["base64"])),
    },
    citation: lossOfCitation("responses"),
    needsSearchCalls: true,
  },
};

const responsesBackend: BackendProtocol = {
  name: "responses",
  encodeRequest,
  decodeResponse,
  streamDecoder: (keeps) => new ResponsesStreamDecoder(keeps),
  decodeError,
  carriesSearch: true,
  hasCustomTools: () => true,
};

export const responses = {
  client: responsesClient,
  backend: responsesBackend,
  passing: responsesPassThrough,
  conversation: "input",
  kept: responsesKept,
  join: responsesJoin,
} satisfies Format;
