// A wire format that nobody speaks, with a client half and a pass-through half: {model, say} is answered by {said}, a stream
// by words and a last event. It is added to a copy of the program (../throw-away.test.ts).

import type { ContentPart } from "../../../src/generation/content.ts";
import type { GenerationRequest } from "../../../src/generation/request.ts";
import type { JsonObject } from "../../../src/lib/json.ts";
import { checkBoolean, checkString, requireModel } from "../../../src/protocols/fields.ts";
import type { Format } from "../../../src/protocols/format.ts";
import { mergeSystem } from "../../../src/protocols/inject-prompt.ts";
import { MarkedWatch } from "../../../src/protocols/marked-watch.ts";
import { markersOf } from "../../../src/protocols/markers.ts";
import { affinityOf, type RequestSummary } from "../../../src/protocols/request-summary.ts";
import { encodeErrorBody, encodeErrorEvent, encodeFailure } from "../../../src/protocols/standard-error.ts";

const NAME = "throw-away";
const END = markersOf('"over":');

export function readThrowAwayRequest(body: JsonObject): RequestSummary {
  checkString(body, "say");
  return { model: requireModel(body), stream: checkBoolean(body, "stream"), choices: 1, affinity: affinityOf };
}

function decodeRequest(body: JsonObject): GenerationRequest {
  const { model, stream } = readThrowAwayRequest(body);
  return {
    model,
    stream,
    system: [],
    messages: [{ role: "user", parts: [{ type: "text", text: String(body.say) }] }],
    tools: [],
    sampling: {},
    reasoning: {},
    origin: { protocol: NAME, body },
    extensions: {},
  };
}

const textOf = (part: ContentPart) => (part.type === "text" ? part.text : "");
const eventOf = (value: JsonObject) => `data: ${JSON.stringify(value)}\n\n`;

export const throwAway = {
  client: {
    name: NAME,
    decodeRequest,
    encodeResponse: ({ parts }, { model }) => ({ model, said: parts.map(textOf).join("") }),
    streamEncoder: () => ({
      push(event) {
        if (event.type === "failure") return encodeFailure(event.failure);
        return event.type === "delta" ? eventOf({ word: event.text }) : "";
      },
      end: () => eventOf({ over: true }),
    }),
    errorBody: encodeErrorBody,
    errorEvent: encodeErrorEvent,
    losses: { parts: { reasoning: () => "answer.thoughts" }, citation: () => "answer.citations" },
  },
  passing: {
    injectPrompt: ({ say }, prompt, merge) => ({ say: mergeSystem(say, prompt, merge) }),
    preamble: new Set(["hush"]),
    watch: () => new MarkedWatch({ end: END, counts: END, countsIn: () => undefined, decodeCounts: () => undefined }),
  },
} satisfies Format;
