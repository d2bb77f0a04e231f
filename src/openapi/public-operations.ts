// The operations of the public API.

import { GENERATION_HEADERS } from "./headers.ts";
import { ref, text } from "./json-schema.ts";
import { type Answer, answer, at, type Operation, type Parameter, pathParameter, queryParameter } from "./operation.ts";

const OF_A_READER = [401, 403, 429, 500] as const;
const OF_GENERATION = [400, 401, 403, 404, 408, 413, 429, 500, 502, 503, 504] as const;

const modelParameter = pathParameter("model", "Id of a model; it may contain slashes.");

function generation(
  paths: readonly string[],
  operation: Pick<Operation, "id" | "summary"> &
    Partial<Operation> & {
      request: string;
      reply: string;
      events?: string;
      headers?: readonly string[];
      example: unknown;
    },
): Operation[] {
  const { request, reply, events, example, headers = GENERATION_HEADERS, ...rest } = operation;
  const plain: Answer = {
    status: 200,
    description: events === undefined ? "The answer." : "The answer, or a stream of events if it was asked for.",
    schema: ref(reply),
    ...(events !== undefined && { events: ref(events) }),
    headers,
  };
  return at(paths, {
    method: "post",
    tag: "Generation",
    audience: "write",
    body: { schema: ref(request), example },
    answers: [plain],
    errors: OF_GENERATION,
    forwardsErrors: true,
    ...rest,
  });
}

const HELLO = [{ role: "user", content: "Hello!" }];

const versionHeaders: readonly Parameter[] = [
  { name: "anthropic-version", in: "header", description: "Handed on to backends of this format.", schema: text },
  { name: "anthropic-beta", in: "header", description: "Handed on to backends of this format.", schema: text },
];

export const PUBLIC_OPERATIONS: readonly Operation[] = [
  ...at(["/", "/anthropic"], {
    method: "get",
    id: "getWelcome",
    tag: "Health",
    audience: "open",
    summary: "What this is, and where to go on",
    description: "A page for browsers, JSON for everybody else, by Accept.",
    answers: [{ ...answer("Welcome", "Name, version and links."), type: "text/html" }],
    errors: [],
  }),
  {
    method: "get",
    path: "/favicon.ico",
    id: "getIcon",
    tag: "Health",
    audience: "open",
    summary: "The icon of the page",
    answers: [{ status: 200, description: "The icon.", type: "image/svg+xml" }],
    errors: [],
  },
  ...at(["/health", "/healthz"], {
    method: "get",
    id: "getHealth",
    tag: "Health",
    audience: "open",
    summary: "Whether the process runs",
    answers: [answer("Health", "It runs.")],
    errors: [],
  }),
  {
    method: "get",
    path: "/readyz",
    id: "getReadiness",
    tag: "Health",
    audience: "open",
    summary: "Whether at least one backend can take requests",
    answers: [
      answer("Readiness", "At least one backend can."),
      { status: 503, description: "None can.", schema: ref("Readiness") },
    ],
    errors: [],
  },
  {
    method: "get",
    path: "/v1/models",
    id: "listModels",
    tag: "Models",
    audience: "read",
    summary: "Models of all available backends",
    answers: [answer("ModelList", "The models.")],
    errors: [...OF_A_READER, 503],
  },
  {
    method: "get",
    path: "/v1/models/{model}",
    id: "getModel",
    tag: "Models",
    audience: "read",
    summary: "One model, also one that is not available now",
    parameters: [modelParameter],
    answers: [answer("Model", "The model.")],
    errors: [...OF_A_READER, 400, 404],
  },
  {
    method: "get",
    path: "/anthropic/v1/models",
    id: "listModelsForMessages",
    tag: "Models",
    audience: "read",
    summary: "Models in the shape of the Messages API",
    parameters: [
      queryParameter("limit", "Most models of a page.", { type: "integer", minimum: 1, maximum: 1000, default: 20 }),
      queryParameter("after_id", "Only models behind this one."),
      queryParameter("before_id", "Only models in front of this one."),
    ],
    answers: [answer("MessagesModelList", "A page of models.")],
    errors: [...OF_A_READER, 400],
    errorFormat: "messages",
  },
  {
    method: "get",
    path: "/anthropic/v1/models/{model}",
    id: "getModelForMessages",
    tag: "Models",
    audience: "read",
    summary: "One model in the shape of the Messages API",
    parameters: [modelParameter],
    answers: [answer("MessagesModel", "The model.")],
    errors: [...OF_A_READER, 400, 404],
    errorFormat: "messages",
  },
  ...generation(["/v1/chat/completions"], {
    id: "createChatCompletion",
    summary: "Chat completion",
    description: "A stream ends with `data: [DONE]`. Fields that are not listed go to the backend as they are.",
    request: "ChatCompletionRequest",
    reply: "ChatCompletion",
    events: "ChatCompletionChunk",
    example: { model: "demo", messages: HELLO },
  }),
  ...generation(["/v1/completions"], {
    id: "createCompletion",
    summary: "Text completion, the older form",
    description: "A stream ends with `data: [DONE]`.",
    request: "CompletionRequest",
    reply: "Completion",
    events: "Completion",
    example: { model: "demo", prompt: "Once upon a time" },
  }),
  ...generation(["/v1/responses"], {
    id: "createResponse",
    summary: "Response, on backends of every type",
    request: "ResponsesRequest",
    reply: "Response",
    events: "ResponseEvent",
    example: { model: "demo", input: "Hello!" },
  }),
  ...generation(["/v1/messages", "/anthropic/v1/messages"], {
    id: "createMessage",
    summary: "Message, on backends of every type",
    parameters: versionHeaders,
    request: "MessagesRequest",
    reply: "Message",
    events: "MessageEvent",
    errorFormat: "messages",
    example: { model: "demo", max_tokens: 256, messages: HELLO },
  }),
  ...generation(["/v1/messages/count_tokens", "/anthropic/v1/messages/count_tokens"], {
    id: "countTokens",
    summary: "Number of input tokens",
    description: "An estimate, marked by X-Signalbox-Estimate, where no backend of the model counts itself.",
    parameters: versionHeaders,
    request: "CountTokensRequest",
    reply: "TokenCount",
    headers: ["X-Signalbox-Backend", "X-Signalbox-Estimate"],
    errorFormat: "messages",
    example: { model: "demo", messages: HELLO },
  }),
  ...generation(["/v1/embeddings"], {
    id: "createEmbedding",
    summary: "Embeddings",
    request: "EmbeddingRequest",
    reply: "EmbeddingList",
    example: { model: "demo", input: "Hello!" },
  }),
  ...generation(["/v1/rerank", "/rerank"], {
    id: "rerank",
    summary: "Documents by their relevance for a query",
    request: "RerankRequest",
    reply: "RerankResult",
    example: { model: "reranker", query: "capital of France", documents: ["Paris", "Berlin"], top_n: 1 },
  }),
  ...generation(["/v1/embed_sparse", "/embed_sparse"], {
    id: "embedSparse",
    summary: "Sparse embeddings",
    request: "SparseEmbeddingRequest",
    reply: "SparseEmbeddings",
    example: { model: "splade", inputs: ["Hello!"] },
  }),
  {
    method: "get",
    path: "/openapi.json",
    id: "getOpenApiDocument",
    tag: "Health",
    audience: "open",
    summary: "This document",
    answers: [answer({ type: "object", additionalProperties: true }, "The document.")],
    errors: [],
  },
];
