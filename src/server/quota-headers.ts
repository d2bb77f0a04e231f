// Tells a client what is left to it, in the headers of its own format.

import { conventionsOf, type Operation } from "../backends/operations.ts";
import { withRequests } from "../generation/quota.ts";
import { clientWords } from "../protocols/registry.ts";
import { standardQuotaHeaders } from "../protocols/standard-quota.ts";
import type { RequestRecord } from "../stats/request-record.ts";

/**
 * Of the limits and the budgets of the request what is tightest; nothing where none holds.
 * @param operation - undefined for an endpoint that asks no model
 * @param nowMs - since 1970
 */
export function writeQuotaHeaders(
  { allowance, quota }: Pick<RequestRecord, "allowance" | "quota">,
  operation: Operation | undefined,
  nowMs: number,
  into: Record<string, string>,
): void {
  const tightest = allowance === undefined ? quota : withRequests(quota, allowance);
  if (tightest === undefined) return;
  const { quotaHeaders = standardQuotaHeaders } = operation === undefined ? {} : clientWords(conventionsOf(operation));
  Object.assign(into, quotaHeaders(tightest, nowMs));
}
