// Local engines that are looked for on their default ports, as data, with the sure sign of each.

import type { BackendKindName } from "../names.ts";

export interface EngineSign {
  path: string;
  /** Whether the JSON answer to GET path can only come from this engine, and it has a model to offer. */
  recognise(body: unknown): boolean;
}

export interface LocalEngine {
  kind: BackendKindName;
  url: string;
  /** One of them is enough. */
  signs: readonly EngineSign[];
}

/** Any server may sit on these ports, so a port alone proves nothing. */
export const LOCAL_ENGINES: readonly LocalEngine[] = [
  {
    kind: "ollama",
    url: "http://127.0.0.1:11434",
    signs: [{ path: "/api/tags", recognise: (body) => hasEntry(body, "models", "digest") }],
  },
  {
    kind: "lmstudio",
    url: "http://127.0.0.1:1234",
    // The second is the form before version 0.4.
    signs: [
      { path: "/api/v1/models", recognise: (body) => hasEntry(body, "models", "key") },
      { path: "/api/v0/models", recognise: (body) => hasEntry(body, "data", "state") },
    ],
  },
  {
    kind: "vllm",
    url: "http://127.0.0.1:8000",
    signs: [{ path: "/v1/models", recognise: (body) => hasEntry(body, "data", "owned_by", "vllm") }],
  },
];

/** Whether a list has an entry with a text field, and with this text if one is given. */
function hasEntry(body: unknown, list: string, field: string, text?: string): boolean {
  const entries = fieldOf(body, list);
  if (!Array.isArray(entries)) return false;
  return entries.some((entry) => {
    const value = fieldOf(entry, field);
    return typeof value === "string" && (text === undefined || value === text);
  });
}

function fieldOf(value: unknown, field: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[field] : undefined;
}
