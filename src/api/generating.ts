// What every endpoint that asks a model says of itself, and what answers it.

import { GENERATION_HEADERS } from "../openapi/headers.ts";
import { oneOfTexts, ref, text } from "../openapi/json-schema.ts";
import { at, type DescribedAnswer, type DescribedEndpoint, type Parameter } from "../openapi/operation.ts";
import { PRIORITY_HEADER } from "../pipeline/queue-class.ts";
import { RECORD_HEADER } from "../recording/recorder.ts";
import { type GenerationEndpoint, type GenerationParts, generationEndpoint } from "./generation.ts";

interface Generating
  extends GenerationEndpoint,
    Pick<DescribedEndpoint, "id" | "summary" | "description" | "parameters"> {
  /** Names of schemas; `events` where an answer can be a stream. */
  request: string;
  /** Undefined where an answer is no JSON. */
  reply?: string;
  events?: string;
  /** Media type of the events; by default text/event-stream. */
  eventsType?: string;
  headers?: readonly string[];
  /** Media type of the body; by default JSON. */
  takes?: "multipart/form-data";
  /** Media type of an answer that is no JSON. */
  gives?: string;
  example?: unknown;
}

const priority: Parameter = {
  name: PRIORITY_HEADER,
  in: "header",
  description: "While the queue is on: the class of the request, one of admission.queue.classes.",
  schema: text,
};

const record: Parameter = {
  name: RECORD_HEADER,
  in: "header",
  description: "While requests are recorded: no keeps this one from being recorded.",
  schema: oneOfTexts("no"),
};

/** An endpoint that asks a model, under one path or several. */
export function generating(paths: readonly string[], parts: GenerationParts, asked: Generating): DescribedEndpoint[] {
  const {
    id,
    summary,
    description,
    parameters = [],
    request,
    reply,
    events,
    eventsType,
    headers = GENERATION_HEADERS,
  } = asked;
  const { takes, gives, example } = asked;
  const answer: DescribedAnswer = {
    status: 200,
    description: events === undefined ? "The answer." : "The answer, or a stream of events if it was asked for.",
    ...(reply !== undefined && { schema: ref(reply) }),
    ...(gives !== undefined && { types: [gives] }),
    ...(events !== undefined && { events: ref(events) }),
    ...(eventsType !== undefined && { eventsType }),
    headers,
  };
  return at(paths, {
    method: "POST",
    id,
    tag: "Generation",
    summary,
    ...(description !== undefined && { description }),
    parameters: [...parameters, priority, record],
    body: {
      schema: ref(request),
      ...(takes !== undefined && { types: [takes] }),
      ...(example !== undefined && { example }),
    },
    answers: [answer],
    errors: [400, 401, 403, 404, 408, 413, 429, 500, 502, 503, 504],
    forwardsErrors: true,
    ...generationEndpoint(asked, parts),
  });
}
