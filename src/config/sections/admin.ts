// Section admin: who may use the admin API, how much history is kept, and the statistics it shows.

import { z } from "zod";
import { parseDuration } from "../../lib/duration.ts";
import { addressRange } from "../values/address-range.ts";
import { ROLES } from "../values/roles.ts";
import { positiveDuration, text, userName, whole } from "./fields.ts";
import { defineSection } from "./section.ts";

export const ADMIN_AUTH_METHODS = ["none", "bearer_token", "basic", "api_key", "oidc"] as const;

type AdminAuthMethod = (typeof ADMIN_AUTH_METHODS)[number];

type CredentialSetting = "token" | "tokens" | "username" | "password" | "users" | "oidc";

/** The settings that a method reads. */
export const METHOD_CREDENTIALS: Readonly<Record<AdminAuthMethod, readonly CredentialSetting[]>> = {
  none: [],
  bearer_token: ["token", "tokens"],
  basic: ["username", "password", "users"],
  api_key: ["token", "tokens"],
  oidc: ["token", "tokens", "oidc"],
};

const method = z
  .enum([...ADMIN_AUTH_METHODS, "bearer"], { error: `expected one of ${ADMIN_AUTH_METHODS.join(", ")}` })
  .transform((name): AdminAuthMethod => (name === "bearer" ? "bearer_token" : name));

const token = () => z.string().min(8, "at least 8 characters");

const role = () =>
  z
    .enum(ROLES)
    .describe(
      "viewer: reads, no secrets. operator: also drains, weights, circuits, keys, budgets, caches. admin: everything.",
    );

const roleValues = () => z.array(text()).default([]);

/** OpenID Connect Core 1.0 and RFC 7636. */
const oidc = z.strictObject({
  issuer: z
    .string()
    .regex(
      /^https?:\/\/[^\s/@?#]+(\/[^\s?#]*)?$/,
      "expected a URL that starts with https:// or http://, without user, password and query",
    )
    .describe("Where /.well-known/openid-configuration of the provider lies below."),
  client_id: text(),
  client_secret: text(),
  scopes: z
    .array(text())
    .default(["openid", "profile", "email"])
    .refine((scopes) => scopes.includes("openid"), "must hold openid")
    .describe("What the provider is asked for."),
  redirect_url: z
    .string()
    .regex(/^https?:\/\/[^\s/@?#]+\/[^\s?#]*$/, "expected a URL that ends in /admin/oidc/callback")
    .refine((url) => url.endsWith("/admin/oidc/callback"), "must end in /admin/oidc/callback")
    .optional()
    .describe(
      "Where the provider sends browsers back to. Default: /admin/oidc/callback at the address that the browser asked.",
    ),
  name_claim: text()
    .default("preferred_username")
    .describe("The name of the person, in the history of changes too; without this claim it is sub."),
  role_claim: text()
    .default("roles")
    .describe(
      "A text or a list of texts that roles looks for; dots lead into objects, unless a claim has the whole name.",
    ),
  roles: z
    .strictObject({ admin: roleValues(), operator: roleValues(), viewer: roleValues() })
    .prefault({})
    .describe("Values of the claim that give each role; of several roles the highest counts."),
  default_role: z.enum(ROLES).optional().describe("For everyone else of the provider. Default: they are refused."),
});

const auth = z.strictObject({
  method: method
    .prefault("none")
    .describe(
      "none: loopback peers only. bearer_token (also bearer), basic, api_key: a key with the scope admin, or oidc: people sign in at an OpenID provider.",
    ),
  token: token()
    .optional()
    .describe("For bearer_token, with the role admin; with api_key and oidc it is accepted too."),
  tokens: z
    .array(z.strictObject({ name: text(), token: token(), role: role() }))
    .default([])
    .describe("Further tokens, each with a name, which the history of changes shows, and a role."),
  username: userName().optional().describe("For basic, with the role admin."),
  password: text().optional().describe("For basic."),
  users: z
    .array(z.strictObject({ username: userName(), password: text(), role: role() }))
    .default([])
    .describe("Further users for basic, each with a role."),
  oidc: oidc.optional().describe("The OpenID provider of method oidc."),
  ip_whitelist: z
    .array(addressRange())
    .default([])
    .describe("Addresses and CIDR ranges that may use the admin API; empty: every address."),
  max_failed_attempts: whole(1, 10_000)
    .default(10)
    .describe("Wrong credentials of one address, with basic of one address and user, until it has to wait."),
  failed_attempts_window: positiveDuration()
    .prefault("60s")
    .describe("After this time without wrong credentials they are forgotten."),
});

const NO_AGE_FORM = 'expected a duration such as "7d", or "0"';

/** "0" and "" switch the check off; the setting is then 0. */
const maxAge = (): z.ZodType<number, string> =>
  z
    .string({ error: NO_AGE_FORM })
    .transform((text) => (text === "" || text === "0" ? 0 : parseDuration(text)))
    .refine((durationMs) => durationMs !== undefined, NO_AGE_FORM) as z.ZodType<number, string>;

const stats = z.strictObject({
  enabled: z.boolean().default(true),
  retention_window: positiveDuration().prefault("24h").describe("How long single requests count in the windows."),
  token_tracking: z.boolean().default(true).describe("Whether tokens are counted."),
  currency: text()
    .max(8, "must have at most 8 characters")
    .default("USD")
    .describe("The currency of all prices, told with costs; nothing is converted."),
  persistence: z
    .strictObject({
      enabled: z.boolean().default(true),
      path: text().default("./data/stats.json").describe("A path below ./data lies in server.data_dir."),
      snapshot_interval: positiveDuration().prefault("5m"),
      max_age: maxAge()
        .prefault("7d")
        .describe('Windows of an older snapshot begin again, totals and costs stay; "0" or "": any age.'),
    })
    .prefault({})
    .describe("Statistics survive a restart."),
});

const requests = z.strictObject({
  enabled: z.boolean().default(true).describe("false: requests are kept in memory only."),
  path: text().default("./data/requests.db").describe("A path below ./data lies in server.data_dir."),
  retention: positiveDuration().prefault("7d").describe("How long requests are kept."),
  max_bytes: whole(16_777_216)
    .default(1024 ** 3)
    .describe("Largest size of the file: the oldest requests make room for new ones."),
});

const audit = z.strictObject({
  enabled: z.boolean().default(true).describe("false: what administrators do is not recorded."),
  path: text().default("./data/audit.db").describe("A path below ./data lies in server.data_dir."),
  retention: positiveDuration().prefault("365d").describe("How long entries are kept."),
  max_bytes: whole(1_048_576)
    .default(256 * 1024 ** 2)
    .describe("Largest size of the file: the oldest refused attempts make room first, then the oldest entries."),
});

export const adminSection = defineSection({
  restartFields: [
    "stats.enabled",
    "stats.persistence",
    "requests.enabled",
    "requests.path",
    "audit.enabled",
    "audit.path",
  ],
  description:
    "Who may use the admin API, how much history of the configuration is kept, statistics, and requests on disk.",
  schema: z.strictObject({
    auth: auth.prefault({}).describe("Credentials of the admin API."),
    max_history_entries: whole(1, 1_000).default(100).describe("Versions of the configuration that are kept."),
    max_backend_name_length: whole(1, 256).default(256).describe("Longest name of a backend."),
    stats: stats.prefault({}).describe("What GET /admin/stats shows."),
    requests: requests.prefault({}).describe("Requests that are over, on disk, for GET /admin/requests."),
    audit: audit.prefault({}).describe("What administrators did, on disk, for GET /admin/audit."),
  }),
  filePaths: {
    "stats.persistence.path": { use: "written", endings: [".json"] },
    "audit.path": { use: "written", endings: [".db", ".sqlite", ".sqlite3"] },
    "requests.path": { use: "written", endings: [".db", ".sqlite", ".sqlite3"] },
  },
  secretPaths: [
    ...["auth.token", "auth.password", "auth.tokens.*.token", "auth.users.*.password"],
    "auth.oidc.client_secret",
  ],
  entryNames: { "auth.tokens": ["name"], "auth.users": ["username"] },
  credentials: [
    { at: "auth.tokens.*", secrets: ["token"], fields: ["token"] },
    { at: "auth.users.*", secrets: ["password"], fields: ["password"] },
    { at: "auth", secrets: ["token"], fields: ["token"] },
    { at: "auth", secrets: ["password"], fields: ["password"] },
  ],
});
