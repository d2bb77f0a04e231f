// An API key as the admin API shows it: what it allows and until when, without its secret.

import type { KeyIdentity } from "../access/key-identity.ts";
import { callerOf, type KeyRights } from "../access/key-rights.ts";
import type { StoredKey } from "../access/stored-keys.ts";
import type { Ledger } from "../budgets/ledger.ts";
import { windowText } from "../budgets/rules.ts";
import { MASK, maskSecrets } from "../config/change/mask.ts";
import type { OwnBudget } from "../config/sections/budgets.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Mapping } from "../config/values/values.ts";
import type { KeyRecord } from "./key-schemas.ts";
import { tightestBudget } from "./tightest-budget.ts";

/** Keys whose budgets are looked up for one answer. */
const MOST_STANDINGS = 1_000;

interface RecordParts {
  nowMs: number;
  ledger: Ledger;
}

/** All keys; the first of them are `written` in the configuration itself, the others come from api_keys_file. */
export function keyRecords(
  settings: Settings,
  written: readonly unknown[],
  identify: KeyIdentity,
  parts: RecordParts,
): KeyRecord[] {
  return settings.api_keys.keys.map((key, index) => {
    const entry = maskSecrets(written[index], ["api_keys", "keys", index]) as Mapping | undefined;
    const id = identify(key);
    return {
      id,
      has_own_id: key.id !== undefined,
      key: (entry?.key as string | undefined) ?? MASK,
      ...rightsView(key, id, parts, index),
      previous_until: momentOf(key.previous?.expires_at, parts.nowMs),
      source: entry === undefined ? "api_keys_file" : "configuration",
      version: null,
    };
  });
}

/** @param index - its place in the answer */
export function storedKeyRecord(
  { id, rights, version, previousUntilMs }: StoredKey,
  parts: RecordParts,
  index = 0,
): KeyRecord {
  return {
    id,
    has_own_id: true,
    key: MASK,
    ...rightsView(rights, id, parts, index),
    previous_until: momentOf(previousUntilMs, parts.nowMs),
    source: "key_store",
    version,
  };
}

function rightsView(key: KeyRights, id: string, { nowMs, ledger }: RecordParts, index: number) {
  const caller = callerOf(key, id);
  const isCounted = ledger.isOn || caller.carriesBudget === true;
  return {
    user_id: key.user_id ?? null,
    organization_id: key.organization_id ?? null,
    scopes: key.scopes,
    admin_role: key.admin_role ?? null,
    models: key.models ?? null,
    rate_limit: key.rate_limit ?? null,
    budget: key.budget === undefined ? null : budgetView(key.budget),
    token_limit: key.token_limit ?? null,
    tightest_budget: index < MOST_STANDINGS && isCounted ? tightestBudget(ledger, caller) : null,
    enabled: key.enabled,
    expires_at: momentOf(key.expires_at),
    is_expired: key.expires_at !== undefined && key.expires_at <= nowMs,
  };
}

export function budgetView({ window, reset_at, ...budget }: OwnBudget) {
  return { ...budget, window: windowText(window), reset_at: momentOf(reset_at) };
}

/** Null for a moment that is not after `afterMs`. */
function momentOf(atMs: number | undefined, afterMs = Number.NEGATIVE_INFINITY): string | null {
  return atMs === undefined || atMs <= afterMs ? null : new Date(atMs).toISOString();
}

const MOST_NAMES = 20;

/** A change of the list as a whole takes away what it does not repeat, which is easily overlooked. */
export function droppedKeyWarnings(before: Settings, after: Settings, identify: KeyIdentity): string[] {
  const kept = new Set(after.api_keys.keys.map(identify));
  const dropped = before.api_keys.keys.map(identify).filter((id) => !kept.has(id));
  if (dropped.length === 0) return [];
  const more = dropped.length > MOST_NAMES ? ` and ${dropped.length - MOST_NAMES} more` : "";
  const names = dropped.slice(0, MOST_NAMES).join(", ");
  return [
    `api_keys.keys: ${names}${more} removed, with all that they own, and their secrets revoked; /admin/keys changes single keys`,
  ];
}
