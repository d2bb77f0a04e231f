// Section api_keys: who may call the public API (docs/api.md).

import { z } from "zod";
import { text, timestamp } from "./fields.ts";
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
  rate_limit: requestCount().optional().describe("Requests per minute; holds also while rate_limiting is off."),
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
  }),
  aliases: { api_keys: "keys" },
  filePaths: { api_keys_file: { use: "file", endings: [".yaml", ".yml", ".toml", ".json"] } },
  secretPaths: ["keys.*.key", "keys.*.previous.key"],
  credentials: [{ at: "keys.*", secrets: ["key", "previous.key"], fields: ["key", "previous", "expires_at"] }],
  entryNames: { keys: ["id", "key"] },
});
