// The chat completions format: Signalbox as a server of it, and as a client of backends that speak it.

import { lossOfCall, lossOfImage, lossOfItem } from "../../generation/answer-losses.ts";
import { isObject } from "../../lib/json.ts";
import type { Format } from "../format.ts";
import type { BackendProtocol, ClientProtocol } from "../protocol.ts";
import { hasSearchTool } from "../search-tool.ts";
import { encodeErrorBody, encodeErrorEvent } from "../standard-error.ts";
import { repliedMessages } from "../with-reply.ts";
import { attachmentsOf, withFile } from "./attachments.ts";
import { decodeError } from "./errors.ts";
import { chatJoin } from "./join.ts";
import { chatKept } from "./kept-answers.ts";
import { chatPassThrough } from "./pass-through.ts";
import { decodeRequest } from "./request-decoder.ts";
import { encodeRequest } from "./request-encoder.ts";
import { decodeResponse } from "./response-decoder.ts";
import { encodeResponse } from "./response-encoder.ts";
import { ChatStreamDecoder } from "./stream-decoder.ts";
import { ChatStreamEncoder } from "./stream-encoder.ts";

export const chatClient: ClientProtocol = {
  name: "chat",
  decodeRequest,
  encodeResponse,
  streamEncoder: (context) => new ChatStreamEncoder(context),
  errorBody: encodeErrorBody,
  errorEvent: encodeErrorEvent,
  attachments: attachmentsOf,
  withFile,
  offersSearch: ({ tools, web_search_options }) => isObject(web_search_options) || hasSearchTool({ tools }),
  settings: {
    temperature: ["temperature"],
    top_p: ["top_p"],
    max_output_tokens: ["max_completion_tokens", "max_tokens"],
    reasoning_effort: ["reasoning_effort"],
    seed: ["seed"],
  },
  withReply: repliedMessages,
  losses: {
    parts: {
      "tool-call": lossOfCall,
      "search-result": () => "answer.searches",
      opaque: lossOfItem("chat"),
      audio: () => "answer.audio",
      image: lossOfImage(new Set(["base64", "url"])),
    },
    citation: ({ url }) => (url === undefined ? "answer.citations" : undefined),
  },
};

export const chatBackend: BackendProtocol = {
  name: "chat",
  encodeRequest,
  decodeResponse,
  streamDecoder: (keeps) => new ChatStreamDecoder(keeps),
  decodeError,
  hasCustomTools: ({ chat: { customTools } }) => customTools,
  inlines: ["document"],
};

export const chat = {
  client: chatClient,
  backend: chatBackend,
  passing: chatPassThrough,
  kept: chatKept,
  join: chatJoin,
} satisfies Format;
