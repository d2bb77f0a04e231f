// What the snapshot file keeps of the statistics: its schema, from which the types of what is written come.

import { z } from "zod";

const count = z.number().min(-1);
/** Blocks as WindowedNumbers writes them. */
const sums = z.array(z.array(count).max(10)).max(1_000);
const latencies = z.array(z.array(count).max(10_000)).max(1_000);
const row = z.strictObject({ name: z.string(), last_used: count, sums });
const backendRow = row.extend({ latencies: latencies.optional(), first_tokens: latencies.optional() });

const costNames = z.strictObject({
  key_id: z.string(),
  user_id: z.string(),
  organization_id: z.string(),
  model_id: z.string(),
  backend_name: z.string(),
});

export const costSums = z.strictObject({
  requests: count,
  prompt_tokens: count,
  completion_tokens: count,
  /** Prompt tokens that were read from a cache. */
  cached_tokens: count,
  cost: count,
});

const costRow = costNames.extend(costSums.shape);

/** Rows of earlier versions' files, which had no times. */
const earlierCostRow = costRow.omit({ user_id: true, organization_id: true, backend_name: true, cached_tokens: true });

/** The rows of one stretch of time, in milliseconds since 1970. */
const writtenCosts = z.strictObject({ from: count, to: count, rows: z.array(costRow).max(2_000) });

export const writtenStats = z.strictObject({
  overall: sums,
  latencies,
  models: z.array(row).max(10_000),
  backends: z.array(backendRow).max(10_000),
  /** Written by earlier versions; empty since. */
  costs: z.array(earlierCostRow).max(10_000),
  cost_history: z.array(writtenCosts).max(1_000).optional(),
});

export type WrittenStats = z.infer<typeof writtenStats>;
export type WrittenRow = z.infer<typeof row>;
export type WrittenBackendRow = z.infer<typeof backendRow>;
export type CostNames = z.infer<typeof costNames>;
export type CostSums = z.infer<typeof costSums>;
export type CostRow = z.infer<typeof costRow>;
export type EarlierCostRow = z.infer<typeof earlierCostRow>;
export type WrittenCosts = z.infer<typeof writtenCosts>;
