// The headers in which the Messages API tells clients what is left to them (docs.anthropic.com/en/api/rate-limits).

import type { Allowance, Quota } from "../../generation/quota.ts";

export function quotaHeaders({ requests, tokens, inputTokens, outputTokens }: Quota): Record<string, string> {
  return {
    ...headersOf("requests", requests),
    ...headersOf("tokens", tokens),
    ...headersOf("input-tokens", inputTokens),
    ...headersOf("output-tokens", outputTokens),
  };
}

function headersOf(name: string, allowance: Allowance | undefined): Record<string, string> {
  if (allowance === undefined) return {};
  const prefix = `anthropic-ratelimit-${name}`;
  return {
    [`${prefix}-limit`]: String(allowance.limit),
    [`${prefix}-remaining`]: String(allowance.remaining),
    // RFC 3339, in whole seconds.
    [`${prefix}-reset`]: new Date(Math.ceil(allowance.resetAtMs / 1000) * 1000).toISOString().replace(".000Z", "Z"),
  };
}
