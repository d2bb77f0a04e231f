// Whom limits concern: which buckets a caller has, of which size, and who has none. Wherever the buckets are kept.

import { createAddressList } from "../access/address-list.ts";
import { clientGroup } from "../access/client-address.ts";
import type { RateLimitingSettings } from "../config/sections/rate-limiting.ts";
import { type BucketPolicy, bucketPolicy } from "./token-bucket.ts";

export interface LimitQuery {
  /** As client-address.ts gives it; undefined for a client on a unix socket. All of these are one client. */
  clientAddress: string | undefined;
  /** The id of a known key, or of a token. */
  keyId: string | undefined;
  /** Of the same. */
  organizationId?: string | undefined;
  /** The key as it was sent, known or not; compared with bypass_keys. */
  key: string | undefined;
}

export interface LimitRulesParts {
  settings: RateLimitingSettings;
  /** Key id -> requests per minute. They hold also while the section is disabled. */
  keyLimits: ReadonlyMap<string, number>;
  /** Organization id -> requests per minute of each caller that has no limit in `keyLimits`; for tokens, which are not listed. */
  memberLimits?: ReadonlyMap<string, number>;
}

const MINUTE_MS = 60_000;

const NONE: ReadonlyMap<string, number> = new Map();

export function createLimitRules({ settings, keyLimits, memberLimits = NONE }: LimitRulesParts) {
  const { enabled, limits } = settings;
  const limitsRequests = enabled || keyLimits.size > 0 || memberLimits.size > 0;
  const perSecond = ({ requests_per_second, burst_capacity }: typeof limits.global): BucketPolicy | undefined =>
    enabled ? bucketPolicy(requests_per_second, 1000, burst_capacity) : undefined;
  const whitelist = createAddressList(settings.whitelist);
  const bypassKeys = new Set(limitsRequests ? settings.bypass_keys : []);
  // N at once, then one each 60 s / N.
  const perMinute = (limits: ReadonlyMap<string, number>): ReadonlyMap<string, BucketPolicy> =>
    new Map([...limits].map(([id, requests]) => [id, bucketPolicy(requests, MINUTE_MS, requests)]));

  return {
    limitsRequests,
    hasBypassKeys: bypassKeys.size > 0,
    limitsBackends: enabled,
    /** Undefined: there is no such limit. */
    client: perSecond(limits.per_client),
    key: perSecond(limits.per_api_key),
    backend: perSecond(limits.per_backend),
    global: perSecond(limits.global),
    /** The limits that were written for one key each; they stand in place of the one for all keys. */
    ownKeys: perMinute(keyLimits),
    members: perMinute(memberLimits),
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
