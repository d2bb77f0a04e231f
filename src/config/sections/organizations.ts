// Section organizations: what keys and tokens of one organization have together (docs/budgets.md).

import { z } from "zod";
import { ownBudget, tokenLimit } from "./budgets.ts";
import { text } from "./fields.ts";
import { requestCount } from "./rate-limiting.ts";
import { defineSection } from "./section.ts";

const organizationSchema = z.strictObject({
  id: text().max(256).describe("As organization_id of keys and the claim of tokens name it."),
  name: text().max(256).optional().describe("Its name for people, in refusals."),
  enabled: z.boolean().default(true).describe("false: its keys and tokens are refused."),
  budget: ownBudget().optional().describe("What all of its members together may spend, as a rule of budgets says it."),
  models: z
    .array(text())
    .min(1, "name at least one model, or leave the key out")
    .optional()
    .describe("For keys and tokens that do not say it: models that they may use; * stands for any text."),
  rate_limit: requestCount()
    .optional()
    .describe("For keys that do not say it, and tokens: requests per minute of each."),
  token_limit: tokenLimit().optional().describe("For keys that do not say it, and tokens: tokens per minute of each."),
});

export const organizationsSection = defineSection({
  isExtension: true,
  reload: "immediate",
  description: "Organizations of keys and tokens: their budgets, and what a key does not say itself.",
  schema: z.array(organizationSchema).max(10_000).prefault([]),
  entryNames: { "": ["id"] },
});

export type Organization = z.output<typeof organizationSchema>;
