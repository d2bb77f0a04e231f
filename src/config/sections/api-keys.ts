// Section api_keys: who may call the public API (docs/api.md).

import { z } from "zod";
import { ROLES } from "../values/roles.ts";
import { queueClass } from "./admission.ts";
import { ownBudget, tokenLimit } from "./budgets.ts";
import { duration, text, timestamp } from "./fields.ts";
import { requestCount } from "./rate-limiting.ts";
import { defineSection } from "./section.ts";

export const SCOPES = ["read", "write", "files", "admin"] as const;

const secret = () => z.string().min(8, "at least 8 characters");

export const apiKeySchema = z.strictObject({
  key: secret().describe("The secret; ${VARIABLE} expands."),
  id: z
    .string()
    .min(1)
    .optional()
    .describe("What the key owns, and its name in logs. Default: a name made of the secret, as key-3f2a9c01d4."),
  user_id: z.string().min(1).optional(),
  organization_id: z.string().min(1).optional(),
  scopes: z
    .array(z.enum(SCOPES))
    .default(["read", "write", "files"])
    .describe("read = list models, write = inference, files = the Files API, admin = the admin API."),
  admin_role: z
    .enum(ROLES)
    .optional()
    .describe("What it may do at the admin API: viewer, operator or admin. Default: admin."),
  rate_limit: requestCount().optional().describe("Requests per minute; holds also while rate_limiting is off."),
  budget: ownBudget().optional().describe("What it may spend, as a rule of the section budgets says it."),
  token_limit: tokenLimit().optional().describe("Tokens per minute, input and output."),
  class: queueClass()
    .optional()
    .describe("Class of its requests in the queue (admission.queue.classes). Default: default."),
  max_class: queueClass()
    .optional()
    .describe("The highest class that its requests may ask for with X-Signalbox-Priority. Default: their own."),
  models: z
    .array(text())
    .min(1, "name at least one model, or leave the key out")
    .optional()
    .describe("Models that it may use; * stands for any text. Default: all."),
  expires_at: timestamp().optional().describe("From then on it is refused with 401. Default: it has no end."),
  enabled: z.boolean().default(true),
  previous: z
    .strictObject({ key: secret(), expires_at: timestamp() })
    .optional()
    .describe("The secret before the last rotation, which is valid until then."),
});

/** RFC 7518, section 3.1, and RFC 8037; none of them works with a secret that both sides have. */
const TOKEN_ALGORITHMS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
] as const;

const claim = () => text().describe("A claim; dots lead into objects, unless a claim has the whole name.");

const jwtIssuerSchema = z.strictObject({
  issuer: text().describe("The claim iss of its tokens, to the letter."),
  audience: z.union([text(), z.array(text()).min(1)]).describe("The claim aud has to name it, or one of them."),
  jwks_url: z
    .string()
    .regex(
      /^https?:\/\/[^\s/@]+(\/[^\s]*)?$/,
      "expected a URL that starts with https:// or http://, without user and password",
    )
    .optional()
    .describe("Where its public keys are fetched, every ten minutes and when a token names another one."),
  jwks_file: text()
    .optional()
    .describe("A file with its public keys (RFC 7517) in place of jwks_url; followed when it changes."),
  algorithms: z
    .array(z.enum(TOKEN_ALGORITHMS))
    .min(1, "name at least one algorithm, or leave the key out")
    .default(["RS256", "PS256", "ES256", "EdDSA"])
    .describe("Algorithms of its signatures; no other is accepted."),
  clock_skew: duration().prefault("30s").describe("By how much the clock of the issuer may differ."),
  claims: z
    .strictObject({
      user: claim().default("sub"),
      organization: claim().optional(),
      scopes: claim().optional(),
      models: claim().optional(),
    })
    .prefault({})
    .describe(
      "Claims that say who the caller is. scopes and models: a list, or texts with blanks between them; a token without them " +
        "has none. Left out: read, write and files, and all models.",
    ),
});

export const apiKeysSection = defineSection({
  reload: "immediate",
  description: "Keys of the public API. permissive accepts requests without a key, blocking answers them with 401.",
  schema: z.strictObject({
    mode: z.enum(["permissive", "blocking"]).default("permissive"),
    keys: z.array(apiKeySchema).prefault([]),
    api_keys_file: z
      .string()
      .min(1)
      .optional()
      .describe("Further keys: a YAML or TOML file with the top-level key keys."),
    jwt: z
      .array(jwtIssuerSchema)
      .default([])
      .describe("Issuers of tokens (JWT, RFC 7519) that let clients in as keys do."),
  }),
  aliases: { api_keys: "keys" },
  filePaths: {
    api_keys_file: { use: "file", endings: [".yaml", ".yml", ".toml", ".json"] },
    "jwt.*.jwks_file": { use: "file", endings: [".json"] },
  },
  secretPaths: ["keys.*.key", "keys.*.previous.key"],
  credentials: [{ at: "keys.*", secrets: ["key", "previous.key"], fields: ["key", "previous", "expires_at"] }],
  entryNames: { keys: ["id", "key"], jwt: ["issuer"] },
});
