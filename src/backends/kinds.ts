// What Signalbox knows about each kind of backend, as data: one row per kind.
// Sources: specification (Health configuration, Model list), decisions.md section 2, wire/local-engines.md, vendor documents.

import type { BackendKindName } from "../names.ts";

/** Operations that are forwarded to a backend. */
export type Operation = "chat" | "completions" | "embeddings";

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

export interface BackendKind {
  name: BackendKindName;
  /** Used when the configuration gives no url. */
  defaultUrl?: string;
  /** How the API key is sent: a bearer token, or bare in the named header. */
  auth: { header: string; scheme: "bearer" | "bare" };
  /** Headers that every request to this kind carries. */
  headers: Readonly<Record<string, string>>;
  /** Path of each operation below the backend's root; `{deployment}` is filled in for azure. */
  paths: Readonly<Partial<Record<Operation, string>>>;
  /**
   * How the listed operations authenticate where that differs from `auth` (a vendor's OpenAI-compatible endpoint may
   * want a bearer token while its own API wants another header).
   */
  operationAuth?: { header: string; scheme: "bearer" | "bare" };
  /** Path of the model list; undefined: the models must be configured. */
  modelsPath?: string;
  probe: ProbeDefinition;
  /** owned_by in model lists; undefined: what the backend itself says. */
  ownedBy?: string;
  /** Response headers that are handed on to the client besides Content-Type and Retry-After. */
  responseHeaders: readonly string[];
}

const BEARER = { header: "authorization", scheme: "bearer" } as const;

const OPENAI_PATHS = {
  chat: "/v1/chat/completions",
  completions: "/v1/completions",
  embeddings: "/v1/embeddings",
} as const;

const OPENAI_RESPONSE_HEADERS = [
  "openai-organization",
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
      embeddings: "/openai/deployments/{deployment}/embeddings",
    },
    // The service lists base models, not deployments: the models of an azure backend are configured.
    probe: probe("/openai/models"),
    ownedBy: "azure",
    responseHeaders: ["apim-request-id", "x-ms-region", ...OPENAI_RESPONSE_HEADERS],
  },
  // Both vendors document an endpoint that speaks the chat format; their own formats come with protocol translation.
  anthropic: {
    name: "anthropic",
    defaultUrl: "https://api.anthropic.com",
    auth: { header: "x-api-key", scheme: "bare" },
    headers: { "anthropic-version": "2023-06-01" },
    paths: { chat: "/v1/chat/completions" },
    operationAuth: BEARER,
    modelsPath: "/v1/models",
    // An empty body is refused with 400 before any token is spent, which proves address and service.
    probe: probe("/v1/messages", [], { method: "POST", acceptStatus: [200, 400, 401, 429], body: "{}" }),
    ownedBy: "anthropic",
    responseHeaders: [],
  },
  gemini: {
    name: "gemini",
    defaultUrl: "https://generativelanguage.googleapis.com",
    auth: { header: "x-goog-api-key", scheme: "bare" },
    headers: {},
    paths: { chat: "/v1beta/openai/chat/completions", embeddings: "/v1beta/openai/embeddings" },
    operationAuth: BEARER,
    modelsPath: "/v1beta/models",
    probe: probe("/models", ["/v1beta/models"]),
    ownedBy: "google",
    responseHeaders: [],
  },
  vllm: openAiStyle("vllm", {
    defaultUrl: "http://127.0.0.1:8000",
    probe: probe("/health", ["/v1/models"]),
    ownedBy: "vllm",
  }),
  llamacpp: openAiStyle("llamacpp", { probe: probe("/health", ["/v1/models"]), ownedBy: "llamacpp" }),
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
  federated: openAiStyle("federated", { probe: probe("/health", ["/v1/models"]) }),
  generic: openAiStyle("generic", { probe: probe("/v1/models", ["/health"]) }),
  // Answered inside the process; the url is only a name that can be shown.
  demo: openAiStyle("demo", { defaultUrl: "http://demo.invalid", probe: probe("/health"), ownedBy: "signalbox" }),
};
