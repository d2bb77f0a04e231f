// Whom limits concern: which buckets a caller has, of which size, and who has none. Wherever the buckets are kept.

import { createAddressList } from "../access/address-list.ts";
import { clientGroup } from "../access/client-address.ts";
import type { RateLimitingSettings } from "../config/sections/rate-limiting.ts";
import { getOrMake } from "../lib/get-or-make.ts";
import { type BucketPolicy, bucketPolicy } from "./token-bucket.ts";

export interface LimitQuery {
  /** As client-address.ts gives it; undefined for a client on a unix socket. All of these are one client. */
  clientAddress: string | undefined;
  /** The id of a known key, or of a token. */
  keyId: string | undefined;
  /** Requests per minute of its own or of its organization, which hold also while the section is disabled. */
  perMinute?: number | undefined;
  /** The key as it was sent, known or not; compared with bypass_keys. */
  key: string | undefined;
}

export interface LimitRulesParts {
  settings: RateLimitingSettings;
}

const MINUTE_MS = 60_000;

/** Different limits of keys that are remembered. */
const MAX_OWN = 1_000;

export function createLimitRules({ settings }: LimitRulesParts) {
  const { enabled, limits } = settings;
  const perSecond = ({ requests_per_second, burst_capacity }: typeof limits.global): BucketPolicy | undefined =>
    enabled ? bucketPolicy(requests_per_second, 1000, burst_capacity) : undefined;
  const whitelist = createAddressList(settings.whitelist);
  const bypassKeys = new Set(settings.bypass_keys);
  const own = new Map<number, BucketPolicy>();

  return {
    limitsRequests: enabled,
    hasBypassKeys: bypassKeys.size > 0,
    limitsBackends: enabled,
    /** Undefined: there is no such limit. */
    client: perSecond(limits.per_client),
    key: perSecond(limits.per_api_key),
    backend: perSecond(limits.per_backend),
    global: perSecond(limits.global),
    /** The caller's own limit, which replaces the one for all keys. N at once, then one each 60 s / N. */
    own({ keyId, perMinute }: LimitQuery): BucketPolicy | undefined {
      if (keyId === undefined || perMinute === undefined) return undefined;
      if (own.size >= MAX_OWN && !own.has(perMinute)) own.clear();
      return getOrMake(own, perMinute, () => bucketPolicy(perMinute, MINUTE_MS, perMinute));
    },
    /** whitelist and bypass_keys lift the limits of keys too, whether the section is enabled or not. */
    isExempt({ clientAddress, key }: LimitQuery): boolean {
      if (key !== undefined && bypassKeys.has(key)) return true;
      return clientAddress !== undefined && whitelist.contains(clientAddress);
    },
  };
}

export function nameOfClient({ clientAddress }: LimitQuery): string {
  return clientAddress === undefined ? "unix" : clientGroup(clientAddress);
}
