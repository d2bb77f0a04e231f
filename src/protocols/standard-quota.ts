// The headers in which OpenAI tells clients what is left to them (platform.openai.com/docs/guides/rate-limits).

import type { Allowance, Quota } from "../generation/quota.ts";

/** @param nowMs - since 1970 */
export function standardQuotaHeaders(
  { requests, tokens, inputTokens, outputTokens }: Quota,
  nowMs: number,
): Record<string, string> {
  const ofTokens = [tokens, inputTokens, outputTokens].filter((each) => each !== undefined);
  const [tightest] = ofTokens.sort((one, other) => one.remaining - other.remaining);
  return { ...headersOf("requests", requests, nowMs), ...headersOf("tokens", tightest, nowMs) };
}

function headersOf(name: string, allowance: Allowance | undefined, nowMs: number): Record<string, string> {
  if (allowance === undefined) return {};
  return {
    [`x-ratelimit-limit-${name}`]: String(allowance.limit),
    [`x-ratelimit-remaining-${name}`]: String(allowance.remaining),
    [`x-ratelimit-reset-${name}`]: resetText(allowance.resetAtMs - nowMs),
  };
}

/** "6m0s", "1h30m0s"; less than a second as "250ms". */
function resetText(leftMs: number): string {
  if (leftMs < 1000) return `${Math.max(0, Math.ceil(leftMs))}ms`;
  const seconds = Math.ceil(leftMs / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  return `${hours > 0 ? `${hours}h` : ""}${hours > 0 || minutes > 0 ? `${minutes}m` : ""}${seconds % 60}s`;
}
