// What Signalbox knows about each kind of backend, as data: one row per kind.
// Sources: specification (Health configuration, Model list), decisions.md section 2, wire/local-engines.md, vendor documents.

import type { ProtocolName } from "../generation/content.ts";
import type { JsonObject } from "../lib/json.ts";
import type { BackendKindName } from "../names.ts";

/** What a backend can be asked to do; each has an endpoint of its own. */
export type Operation =
  | "chat"
  | "completions"
  | "responses"
  | "messages"
  | "generate-content"
  | "count-tokens"
  | "embeddings"
  | "embed-content"
  | "rerank"
  | "embed-sparse";

/** Operations that can be done by means of others, in order of preference, because their formats are translated. */
const STAND_INS: Readonly<Partial<Record<Operation, readonly Operation[]>>> = {
  chat: ["messages", "generate-content", "responses"],
  completions: ["chat", "messages", "generate-content", "responses"],
  responses: ["messages", "generate-content", "chat"],
  messages: ["generate-content", "chat", "responses"],
  embeddings: ["embed-content"],
};

const FORMATS: Readonly<Partial<Record<Operation, ProtocolName>>> = {
  chat: "chat",
  completions: "completions",
  responses: "responses",
  messages: "messages",
  "generate-content": "generate-content",
};

/** The wire format of an operation that generates; undefined for the others, whose formats are not translated alike. */
export function formatOf(operation: Operation): ProtocolName | undefined {
  return FORMATS[operation];
}

export type OperationPaths = Readonly<Partial<Record<Operation, string>>>;

/** The operation that a backend with these paths is asked for; undefined when it cannot do it, nor anything like it. */
export function servedBy(paths: OperationPaths, operation: Operation): Operation | undefined {
  if (paths[operation] !== undefined) return operation;
  return STAND_INS[operation]?.find((standIn) => paths[standIn] !== undefined);
}

/** The formats that `backends[].protocols` may name, with the usual paths of each. */
export const PROTOCOL_PATHS = {
  chat: { chat: "/v1/chat/completions" },
  responses: { responses: "/v1/responses" },
  messages: { messages: "/v1/messages", "count-tokens": "/v1/messages/count_tokens" },
} as const satisfies Record<string, OperationPaths>;

export interface ProbeDefinition {
  method: "GET" | "POST" | "HEAD";
  /** Path below the backend's root (without /v1 normalisation). */
  path: string;
  /** Tried in order when the path answers 404. */
  fallbackPaths: readonly string[];
  /** Status codes that count as healthy. */
  acceptStatus: readonly number[];
  /** Status codes that mean "alive, but still loading". */
  warmupStatus: readonly number[];
  /** JSON body of a POST probe. */
  body?: string;
}

/**
 * The operations in which a kind goes on exactly where the last words of the assistant stop, and the members that ask
 * for it.
 */
export type Prefill = Readonly<Partial<Record<Operation, JsonObject>>>;

export interface BackendKind {
  name: BackendKindName;
  /** Used when the configuration gives no url. */
  defaultUrl?: string;
  /** How the API key is sent: a bearer token, or bare in the named header. */
  auth: { header: string; scheme: "bearer" | "bare" };
  /** Headers that every request to this kind carries. */
  headers: Readonly<Record<string, string>>;
  /** Path of each operation below the backend's root; `{deployment}`, `{model}` and `{method}` are filled in. */
  paths: OperationPaths;
  /** Path of the model list; undefined: the models must be configured. */
  modelsPath?: string;
  probe: ProbeDefinition;
  /** owned_by in model lists; undefined: what the backend itself says. */
  ownedBy?: string;
  /**
   * Response headers that are handed on to the client besides Content-Type and Retry-After. None of them names the
   * operator's organisation at the vendor.
   */
  responseHeaders: readonly string[];
  /** Undefined: nothing of the kind is documented. */
  prefill?: Prefill;
}

/** "extra parameters" of vLLM's chat completions; SGLang reads the first, as its ChatCompletionRequest says. */
const CONTINUE_FINAL_MESSAGE: Prefill = {
  chat: { continue_final_message: true, add_generation_prompt: false },
  completions: {},
};

const BEARER = { header: "authorization", scheme: "bearer" } as const;

const OPENAI_PATHS = {
  chat: "/v1/chat/completions",
  completions: "/v1/completions",
  embeddings: "/v1/embeddings",
} as const;

const RERANK_PATHS = { rerank: "/v1/rerank", "embed-sparse": "/embed_sparse" } as const;

const ANTHROPIC_RESPONSE_HEADERS = [
  "anthropic-ratelimit-input-tokens-limit",
  "anthropic-ratelimit-input-tokens-remaining",
  "anthropic-ratelimit-input-tokens-reset",
  "anthropic-ratelimit-output-tokens-limit",
  "anthropic-ratelimit-output-tokens-remaining",
  "anthropic-ratelimit-output-tokens-reset",
  "anthropic-ratelimit-requests-limit",
  "anthropic-ratelimit-requests-remaining",
  "anthropic-ratelimit-requests-reset",
] as const;

const OPENAI_RESPONSE_HEADERS = [
  "openai-processing-ms",
  "openai-version",
  "x-ratelimit-limit-requests",
  "x-ratelimit-limit-tokens",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-remaining-tokens",
  "x-ratelimit-reset-requests",
  "x-ratelimit-reset-tokens",
] as const;

function probe(
  path: string,
  fallbackPaths: readonly string[] = [],
  more: Partial<ProbeDefinition> = {},
): ProbeDefinition {
  return { method: "GET", path, fallbackPaths, acceptStatus: [200], warmupStatus: [503], ...more };
}

function openAiStyle(name: BackendKindName, more: Partial<BackendKind> & Pick<BackendKind, "probe">): BackendKind {
  return {
    name,
    auth: BEARER,
    headers: {},
    paths: OPENAI_PATHS,
    modelsPath: "/v1/models",
    responseHeaders: [],
    ...more,
  };
}

export const BACKEND_KINDS: Readonly<Record<BackendKindName, BackendKind>> = {
  openai: openAiStyle("openai", {
    defaultUrl: "https://api.openai.com",
    paths: { ...OPENAI_PATHS, responses: "/v1/responses" },
    probe: probe("/v1/models"),
    ownedBy: "openai",
    responseHeaders: OPENAI_RESPONSE_HEADERS,
  }),
  azure: {
    name: "azure",
    auth: { header: "api-key", scheme: "bare" },
    headers: {},
    paths: {
      chat: "/openai/deployments/{deployment}/chat/completions",
      completions: "/openai/deployments/{deployment}/completions",
      // The deployment is named by the body's model (Microsoft, "Azure OpenAI Responses API").
      responses: "/openai/v1/responses",
      embeddings: "/openai/deployments/{deployment}/embeddings",
    },
    // The service lists base models, not deployments: the models of an azure backend are configured.
    probe: probe("/openai/models"),
    ownedBy: "azure",
    responseHeaders: ["apim-request-id", "x-ms-region", ...OPENAI_RESPONSE_HEADERS],
  },
  anthropic: {
    name: "anthropic",
    defaultUrl: "https://api.anthropic.com",
    auth: { header: "x-api-key", scheme: "bare" },
    headers: { "anthropic-version": "2023-06-01" },
    paths: { messages: "/v1/messages", "count-tokens": "/v1/messages/count_tokens" },
    modelsPath: "/v1/models",
    // An empty body is refused with 400 before any token is spent, which proves address and service.
    probe: probe("/v1/messages", [], { method: "POST", acceptStatus: [200, 400, 401, 429], body: "{}" }),
    ownedBy: "anthropic",
    // Anthropic, "Prefill Claude's response"; newer models refuse it (protocols/messages/model-rules.ts).
    prefill: { messages: {} },
    responseHeaders: ANTHROPIC_RESPONSE_HEADERS,
  },
  gemini: {
    name: "gemini",
    defaultUrl: "https://generativelanguage.googleapis.com",
    auth: { header: "x-goog-api-key", scheme: "bare" },
    headers: {},
    paths: {
      "generate-content": "/v1beta/models/{model}:{method}",
      "embed-content": "/v1beta/models/{model}:batchEmbedContents",
    },
    modelsPath: "/v1beta/models",
    probe: probe("/models", ["/v1beta/models"]),
    ownedBy: "google",
    responseHeaders: [],
  },
  vllm: openAiStyle("vllm", {
    defaultUrl: "http://127.0.0.1:8000",
    paths: { ...OPENAI_PATHS, ...RERANK_PATHS },
    probe: probe("/health", ["/v1/models"]),
    ownedBy: "vllm",
    prefill: CONTINUE_FINAL_MESSAGE,
  }),
  llamacpp: openAiStyle("llamacpp", {
    paths: { ...OPENAI_PATHS, rerank: RERANK_PATHS.rerank },
    probe: probe("/health", ["/v1/models"]),
    ownedBy: "llamacpp",
    // llama-server's option --no-prefill-assistant says so: a last message of the assistant is a prefill.
    prefill: { chat: {}, completions: {} },
  }),
  // Whether a last message of the assistant is continued depends on the template; nothing is documented (as of LM Studio).
  ollama: openAiStyle("ollama", {
    defaultUrl: "http://127.0.0.1:11434",
    probe: probe("/api/tags", ["/"]),
    ownedBy: "ollama",
  }),
  lmstudio: openAiStyle("lmstudio", {
    defaultUrl: "http://127.0.0.1:1234",
    probe: probe("/v1/models", ["/api/v1/models"]),
    ownedBy: "lmstudio",
  }),
  // Another gateway of this kind: every format passes through, and the far one translates.
  federated: openAiStyle("federated", {
    paths: {
      ...OPENAI_PATHS,
      ...RERANK_PATHS,
      responses: "/v1/responses",
      messages: "/v1/messages",
      "count-tokens": "/v1/messages/count_tokens",
    },
    probe: probe("/health", ["/v1/models"]),
  }),
  generic: openAiStyle("generic", {
    paths: { ...OPENAI_PATHS, ...RERANK_PATHS },
    probe: probe("/v1/models", ["/health"]),
  }),
  // Answered inside the process; the url is only a name that can be shown.
  demo: openAiStyle("demo", { defaultUrl: "http://demo.invalid", probe: probe("/health"), ownedBy: "signalbox" }),
};

/** What a generic backend is when its list says that it is SGLang, which has no type of its own. */
export const SGLANG: BackendKind = { ...BACKEND_KINDS.generic, prefill: CONTINUE_FINAL_MESSAGE };
