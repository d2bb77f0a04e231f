// Who may call what, in the words of OpenAPI.

import type { Endpoint } from "../server/endpoint.ts";

/** The callers of an operation: all, keys with a scope, administrators, or scrapers of metrics. */
type Audience = Endpoint["access"] | "metrics";

/** Only the metrics have credentials of their own. */
export function audienceOf({ access, credentials }: Endpoint): Audience {
  return credentials === undefined ? access : "metrics";
}

export const SECURITY_SCHEMES = {
  bearer: { type: "http", scheme: "bearer", description: "A key of api_keys; how OpenAI clients send it." },
  api_key: {
    type: "apiKey",
    in: "header",
    name: "X-API-Key",
    description: "A key of api_keys; how Anthropic clients send it.",
  },
  goog_api_key: {
    type: "apiKey",
    in: "header",
    name: "X-Goog-Api-Key",
    description: "A key of api_keys; how clients of Gemini's API send it.",
  },
  admin_bearer: { type: "http", scheme: "bearer", description: "admin.auth.method: bearer_token or oidc" },
  admin_basic: { type: "http", scheme: "basic", description: "admin.auth.method: basic" },
  admin_api_key: {
    type: "apiKey",
    in: "header",
    name: "X-API-Key",
    description: "admin.auth.method: api_key; a key with the scope admin, or a token of admin.auth.",
  },
  admin_session: {
    type: "apiKey",
    in: "cookie",
    name: "signalbox_session",
    description: "A sign-in of a browser (POST /admin/session); the port of the Host stands behind the name, as _8080.",
  },
  metrics_basic: { type: "http", scheme: "basic", description: "metrics.auth" },
} as const;

type Requirement = Partial<Record<keyof typeof SECURITY_SCHEMES, string[]>>;

const KEYS: readonly Requirement[] = [{ bearer: [] }, { api_key: [] }, { goog_api_key: [] }];

/** Where nothing is needed, an empty requirement stands beside the others: it depends on the configuration. */
const REQUIREMENTS: Readonly<Record<Audience, readonly Requirement[]>> = {
  open: [],
  read: [...KEYS, {}],
  write: [...KEYS, {}],
  files: [...KEYS, {}],
  any_key: KEYS,
  admin: [{ admin_bearer: [] }, { admin_basic: [] }, { admin_api_key: [] }, { admin_session: [] }, {}],
  metrics: [{ metrics_basic: [] }, {}],
};

export function securityOf(audience: Audience): readonly Requirement[] {
  return REQUIREMENTS[audience];
}

export const AUDIENCE_NOTES: Readonly<Record<Audience, string>> = {
  open: "",
  read: "Keys need the scope `read`.",
  write: "Keys need the scope `write`.",
  files: "Keys need the scope `files`.",
  any_key: "Every key will do, whatever its scopes; without one the answer is 401.",
  admin: "With admin.auth.method none, only clients on the gateway's own machine are answered.",
  metrics: "",
};
