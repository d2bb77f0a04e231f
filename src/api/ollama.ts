// The endpoints of Ollama's own API that ask a model: conversations, prompts and embeddings, for tools that speak nothing
// else, on backends of every type.

import type { JsonObject } from "../lib/json.ts";
import type { DescribedEndpoint } from "../openapi/operation.ts";
import type { ModelRequest } from "../pipeline/model-request.ts";
import {
  embedsNothing,
  encodeEmbedding,
  encodeEmbeddings,
  encodeEmbedRequest,
} from "../protocols/ollama/embeddings.ts";
import { type Form, OLLAMA } from "../protocols/ollama/form.ts";
import { JSON_LINES } from "../protocols/ollama/lines.ts";
import { loadAnswer, loadsModel } from "../protocols/ollama/loading.ts";
import { readChatRequest, readEmbedRequest, readGenerateRequest } from "../protocols/ollama/read-request.ts";
import type { RequestSummary } from "../protocols/request-summary.ts";
import type { Call } from "../server/endpoint.ts";
import { generating } from "./generating.ts";
import type { GenerationParts } from "./generation.ts";
import { type ModelParts, unknownModel } from "./models.ts";
import { OLLAMA_WORDS, withoutTag } from "./ollama-models.ts";

interface OllamaParts extends GenerationParts {
  models: ModelParts;
}

/** @param limits - of bodies, in bytes */
export function ollamaRoutes(
  parts: OllamaParts,
  limits: { conversation: number; embeddings: number },
): DescribedEndpoint[] {
  return [
    ...generating(["/api/chat"], parts, {
      ...lines(parts, limits.conversation, readChatRequest, "chat"),
      id: "ollamaChat",
      summary: "Conversation in Ollama's format",
      request: "OllamaChatRequest",
      reply: "OllamaChatAnswer",
      events: "OllamaChatAnswer",
      example: { model: "demo", messages: [{ role: "user", content: "Hello!" }], stream: false },
    }),
    ...generating(["/api/generate"], parts, {
      ...lines(parts, limits.conversation, readGenerateRequest, "generate"),
      id: "ollamaGenerate",
      summary: "One prompt in Ollama's format",
      request: "OllamaGenerateRequest",
      reply: "OllamaGenerateAnswer",
      events: "OllamaGenerateAnswer",
      example: { model: "demo", prompt: "Once upon a time", stream: false },
    }),
    ...generating(["/api/embed"], parts, {
      ...vectors(parts, limits.embeddings, "input", { embeddings: [] }, (told, call, { askedModel }) =>
        encodeEmbeddings(told, askedModel, parts.now() - call.context.record.startedAtMs),
      ),
      id: "ollamaEmbed",
      summary: "Embeddings in Ollama's format",
      request: "OllamaEmbedRequest",
      reply: "OllamaEmbeddings",
      example: { model: "demo", input: ["Hello!"] },
    }),
    ...generating(["/api/embeddings"], parts, {
      ...vectors(parts, limits.embeddings, "prompt", { embedding: [] }, encodeEmbedding),
      id: "ollamaEmbedding",
      summary: "Embedding of one text in Ollama's format, the older form",
      request: "OllamaEmbeddingRequest",
      reply: "OllamaEmbedding",
      example: { model: "demo", prompt: "Hello!" },
    }),
  ];
}

function lines(
  { models, wallTime }: OllamaParts,
  maxBodyBytes: number,
  read: (body: JsonObject) => RequestSummary,
  form: Form,
) {
  return {
    operation: OLLAMA,
    maxBodyBytes,
    read,
    arrange: (_call: Call, asked: ModelRequest) => withoutTag(models, asked),
    answerHere(call: Call, asked: ModelRequest) {
      const { value } = asked.body;
      if (!loadsModel(value, form)) return undefined;
      const answer = loadAnswer(form, value, asked.askedModel, new Date(wallTime()).toISOString());
      const dropped = value.keep_alive === undefined ? [] : ["keep_alive"];
      return answered(call, asked, models, answer, dropped);
    },
    framing: () => JSON_LINES,
    description: "The answer is a stream of JSON objects, a line each, unless `stream` is false.",
    eventsType: JSON_LINES.contentType,
  };
}

/**
 * Asked and answered in the words of the embeddings endpoint on the way to the backends.
 * @param nothing - the answer to no text
 */
function vectors(
  { models }: OllamaParts,
  maxBodyBytes: number,
  field: "input" | "prompt",
  nothing: JsonObject,
  encode: (told: JsonObject, call: Call, asked: ModelRequest) => JsonObject,
) {
  return {
    operation: "embeddings",
    maxBodyBytes,
    read: (body: JsonObject) => readEmbedRequest(body, field),
    arrange(_call: Call, asked: ModelRequest) {
      const { value } = asked.body;
      if (embedsNothing(value)) return asked;
      const { model, body, ...rest } = withoutTag(models, asked);
      const { members, lost } = encodeEmbedRequest(value);
      return { ...rest, model, body: body.with({ ...members, model }), lost };
    },
    answerHere(call: Call, asked: ModelRequest) {
      if (!embedsNothing(asked.body.value)) return undefined;
      return answered(call, asked, models, { model: asked.askedModel, ...nothing }, []);
    },
    wording: { words: OLLAMA_WORDS, answer: encode },
  };
}

/** In the gateway's own words, where there is nothing to ask a backend. */
async function answered(
  { headers, context }: Call,
  { model, stream }: ModelRequest,
  models: ModelParts,
  answer: JsonObject,
  dropped: readonly string[],
): Promise<Response> {
  if ((await models.fleet.models.find(model)) === undefined) throw await unknownModel(models, model, context.caller);
  if (dropped.length > 0) {
    context.record.dropped = dropped;
    headers["X-Signalbox-Dropped"] = dropped.join(", ");
  }
  if (!stream) return Response.json(answer, { headers });
  return new Response(`${JSON.stringify(answer)}\n`, {
    headers: { ...headers, "Content-Type": JSON_LINES.contentType },
  });
}
