// Section admin: who may use the admin API, how much history is kept, and the statistics it shows.

import { z } from "zod";
import { parseDuration } from "../../lib/duration.ts";
import { addressRange } from "../values/address-range.ts";
import { positiveDuration, text, userName, whole } from "./fields.ts";
import { defineSection } from "./section.ts";

const ADMIN_AUTH_METHODS = ["none", "bearer_token", "basic", "api_key"] as const;

type AdminAuthMethod = (typeof ADMIN_AUTH_METHODS)[number];

type CredentialSetting = "token" | "username" | "password";

/** Required settings; api_key takes the token besides its keys. */
export const METHOD_CREDENTIALS: Readonly<Record<AdminAuthMethod, readonly CredentialSetting[]>> = {
  none: [],
  bearer_token: ["token"],
  basic: ["username", "password"],
  api_key: ["token"],
};

const method = z
  .enum([...ADMIN_AUTH_METHODS, "bearer"], { error: `expected one of ${ADMIN_AUTH_METHODS.join(", ")}` })
  .transform((name): AdminAuthMethod => (name === "bearer" ? "bearer_token" : name));

const auth = z.strictObject({
  method: method
    .prefault("none")
    .describe("none: loopback peers only. bearer_token (also bearer), basic, or api_key: a key with the scope admin."),
  token: z
    .string()
    .min(8, "at least 8 characters")
    .optional()
    .describe("For bearer_token; with api_key it is accepted too."),
  username: userName().optional().describe("For basic."),
  password: text().optional().describe("For basic."),
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
  secretPaths: ["auth.token", "auth.password"],
  credentials: [
    { at: "auth", secrets: ["token"], fields: ["token"] },
    { at: "auth", secrets: ["password"], fields: ["password"] },
  ],
});
