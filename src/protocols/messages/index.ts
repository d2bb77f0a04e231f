// The Messages format: both halves, put together.

import { lossOfCitation, lossOfItem } from "../../generation/answer-losses.ts";
import type { Format } from "../format.ts";
import type { BackendProtocol, ClientProtocol } from "../protocol.ts";
import { hasSearchTool } from "../search-tool.ts";
import { repliedMessages } from "../with-reply.ts";
import { attachmentsOf, withFile } from "./attachments.ts";
import { decodeError, errorBody, errorEvent } from "./errors.ts";
import { messagesJoin } from "./join.ts";
import { messagesKept } from "./kept-answers.ts";
import { messagesPassThrough } from "./pass-through.ts";
import { quotaHeaders } from "./quota.ts";
import { decodeRequest } from "./request-decoder.ts";
import { encodeRequest } from "./request-encoder.ts";
import { decodeResponse } from "./response-decoder.ts";
import { encodeResponse } from "./response-encoder.ts";
import { createStreamDecoder } from "./stream-decoder.ts";
import { createStreamEncoder } from "./stream-encoder.ts";
import { effortLevels } from "./thinking-config.ts";

export const messagesClient: ClientProtocol = {
  name: "messages",
  decodeRequest,
  encodeResponse,
  streamEncoder: createStreamEncoder,
  errorBody,
  errorEvent,
  attachments: attachmentsOf,
  withFile,
  quotaHeaders,
  ownErrors: { schema: "MessagesError", idHeader: "request-id", frameType: "error" },
  offersSearch: hasSearchTool,
  quotesSources: true,
  settings: {
    temperature: ["temperature"],
    top_p: ["top_p"],
    max_output_tokens: ["max_tokens"],
    reasoning_effort: ["output_config.effort"],
  },
  withReply: repliedMessages,
  losses: {
    parts: {
      opaque: lossOfItem("messages"),
      audio: () => "answer.audio",
      image: () => "answer.images",
    },
    citation: lossOfCitation("messages"),
  },
};

const messagesBackend: BackendProtocol = {
  name: "messages",
  encodeRequest,
  decodeResponse,
  streamDecoder: createStreamDecoder,
  decodeError,
  carriesSearch: true,
  effortLevels,
};

export const messages = {
  client: messagesClient,
  backend: messagesBackend,
  passing: messagesPassThrough,
  kept: messagesKept,
  join: messagesJoin,
} satisfies Format;
