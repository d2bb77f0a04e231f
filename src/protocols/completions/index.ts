// The text completions format, translated for backends that know only conversations. There is no backend half: a request
// reaches backends that speak the format as it came, and a stream that takes over an answer is read as chat (registry.ts).

import { lossOfCall } from "../../generation/answer-losses.ts";
import type { Format } from "../format.ts";
import type { ClientProtocol } from "../protocol.ts";
import { encodeErrorBody, encodeErrorEvent } from "../standard-error.ts";
import { completionsJoin } from "./join.ts";
import { completionsKept } from "./kept-answers.ts";
import { completionsPassThrough } from "./pass-through.ts";
import { decodeRequest } from "./request-decoder.ts";
import { encodeResponse } from "./response-encoder.ts";
import { CompletionStreamEncoder } from "./stream-encoder.ts";

export const completionsClient: ClientProtocol = {
  name: "completions",
  decodeRequest,
  encodeResponse,
  streamEncoder: (context) => new CompletionStreamEncoder(context),
  errorBody: encodeErrorBody,
  errorEvent: encodeErrorEvent,
  settings: { temperature: ["temperature"], top_p: ["top_p"], max_output_tokens: ["max_tokens"], seed: ["seed"] },
  losses: {
    parts: {
      "tool-call": (part) => lossOfCall(part) ?? "answer.calls",
      "search-result": () => "answer.searches",
      reasoning: () => "answer.thoughts",
      opaque: () => "answer.items",
      audio: () => "answer.audio",
      image: () => "answer.images",
    },
    citation: () => "answer.citations",
  },
};

export const completions = {
  client: completionsClient,
  passing: completionsPassThrough,
  conversation: "prompt",
  kept: completionsKept,
  join: completionsJoin,
} satisfies Format;
