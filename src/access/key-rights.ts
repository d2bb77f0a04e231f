// What a key allows, wherever it stands: in the configuration, or in the key store.

import type { Settings } from "../config/sections/registry.ts";
import { modelsOf } from "./allowed-models.ts";
import type { Caller } from "./caller.ts";

export type KeySettings = Settings["api_keys"]["keys"][number];

export type KeyRights = Omit<KeySettings, "key" | "previous" | "id">;

export function callerOf(key: KeyRights, keyId: string): Caller {
  return {
    keyId,
    userId: key.user_id,
    organizationId: key.organization_id,
    scopes: new Set(key.scopes),
    ...modelsOf(key.models),
    ...((key.budget ?? key.token_limit) !== undefined && { carriesBudget: true }),
    queueClass: key.class,
    highestQueueClass: key.max_class,
    requestsPerMinute: key.rate_limit,
    expiresAtMs: key.expires_at ?? Number.POSITIVE_INFINITY,
  };
}
