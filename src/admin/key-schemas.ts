// Requests and answers of the admin API for API keys, as JSON Schema.

import { AMOUNT_NAMES } from "../budgets/amounts.ts";
import { SCOPES } from "../config/sections/api-keys.ts";
import { ROLES } from "../config/values/roles.ts";
import { DURATION_PATTERN } from "../lib/duration.ts";
import { changed, entryDryRun, madeFor, version } from "../openapi/change-schemas.ts";
import {
  anything,
  component,
  count,
  described,
  flag,
  list,
  namedShape,
  number,
  oneOfTexts,
  orNull,
  schemasOf,
  shape,
  strictRequest,
  text,
  texts,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { entryPatch, entrySchema } from "../openapi/section-schemas.ts";

const TightestBudget = shape({
  budget: text,
  amount: oneOfTexts(...AMOUNT_NAMES),
  limit: described(number, "Costs in the currency."),
  remaining: number,
  share: described(number, "Of the limit, spent."),
});
export type TightestBudget = ValueOf<typeof TightestBudget>;

export const KeyRecord = namedShape("KeyRecord", {
  id: text,
  has_own_id: described(flag, "false: the id is a digest of the secret."),
  key: described(text, "Masked."),
  user_id: orNull(text),
  organization_id: orNull(text),
  scopes: list(oneOfTexts(...SCOPES)),
  admin_role: described(orNull(oneOfTexts(...ROLES)), "With the scope admin; null: admin."),
  models: described(orNull(texts), "null: all."),
  rate_limit: orNull(count),
  budget: described(orNull(anything), "As it is written; GET /admin/budgets/key:ID shows what is spent of it."),
  token_limit: orNull(count),
  tightest_budget: described(
    orNull(TightestBudget),
    "Of all budgets that may count it, the one that is spent most; null where there is none, and beyond the first 1,000 keys.",
  ),
  enabled: flag,
  expires_at: orNull(time),
  is_expired: flag,
  previous_until: described(orNull(time), "Until when the secret before the last rotation is valid."),
  source: described(
    oneOfTexts("configuration", "api_keys_file", "key_store"),
    "Where it lives. key_store: made through the admin API; no edit of the file, rollback or import changes it.",
  ),
  version: described(orNull(version), "Of a key of the key store, for If-Match; null: that of the configuration."),
});
export const KeyList = namedShape("KeyList", {
  keys: list(KeyRecord),
  total: described(count, "Of all that are found, on whatever page."),
  next_cursor: described(orNull(text), "For the next page; null: this is the last."),
});
export type KeyList = ValueOf<typeof KeyList>;
export type KeyRecord = ValueOf<typeof KeyRecord>;
export const KeyChange = component("KeyChange", () => {
  const change = entryPatch(entrySchema("api_keys", "keys"));
  return described(change, "Fields of an entry of api_keys.keys; null removes one. Only a rotation makes `previous`.");
});
export const KeyChanged = namedShape(
  "KeyChanged",
  { ...changed, key: KeyRecord },
  { ...entryDryRun, secret: described(text, "Made by the gateway; shown in this answer only.") },
);
export const KeyRemoved = namedShape("KeyRemoved", { ...changed, removed_key: KeyRecord }, entryDryRun);
export const KeyRotation = component(
  "KeyRotation",
  strictRequest(
    {},
    {
      overlap: described(
        { ...text, pattern: DURATION_PATTERN },
        "How long the old secret stays valid, such as 24h; 0s: not at all. Default 1h.",
      ),
      key: described(text, "The new secret; left out: one is made."),
      ...madeFor,
    },
  ),
);

export const KEY_SCHEMAS = schemasOf(KeyList, KeyRecord, KeyChange, KeyChanged, KeyRemoved, KeyRotation);
