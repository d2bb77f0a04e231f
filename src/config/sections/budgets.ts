// Section budgets: how much keys, users, organizations, models and backends may spend (docs/budgets.md).

import { z } from "zod";
import { DURATION_PATTERN, parseDuration } from "../../lib/duration.ts";
import { text, timestamp, timeZone } from "./fields.ts";
import { defineSection } from "./section.ts";

export const CALENDAR_UNITS = ["minute", "hour", "day", "week", "month"] as const;

/** A stretch of the calendar in budgets.time_zone, or the time up to now. */
export type BudgetWindow = { unit: (typeof CALENDAR_UNITS)[number] } | { rollingMs: number };

const LONGEST_ROLLING_MS = 366 * 24 * 60 * 60 * 1000;
const WINDOW_FORM = `expected ${CALENDAR_UNITS.join(", ")}, or a duration of 1s to 366d such as "24h"`;

const isUnit = (written: string): written is (typeof CALENDAR_UNITS)[number] =>
  (CALENDAR_UNITS as readonly string[]).includes(written);

const budgetWindow = () =>
  z
    .string({ error: WINDOW_FORM })
    .regex(new RegExp(`^(${CALENDAR_UNITS.join("|")})$|${DURATION_PATTERN}`), WINDOW_FORM)
    .refine((written) => {
      const rollingMs = isUnit(written) ? 1_000 : (parseDuration(written) ?? 0);
      return rollingMs >= 1_000 && rollingMs <= LONGEST_ROLLING_MS;
    }, WINDOW_FORM)
    .transform(
      (written): BudgetWindow =>
        isUnit(written) ? { unit: written } : { rollingMs: parseDuration(written) as number },
    ) as z.ZodType<BudgetWindow, string>;

/** Money is counted in billionths: what a whole number of a double can hold is a little more. */
const MOST_COST = 9_000_000;
const MOST_TOKENS = 1_000_000_000_000;

const tokens = () => z.int().min(0, "must not be negative").max(MOST_TOKENS, `must be at most ${MOST_TOKENS}`);

const AMOUNTS = {
  cost: z
    .number()
    .min(0, "must not be negative")
    .max(MOST_COST, `must be at most ${MOST_COST}`)
    .optional()
    .describe("In the currency of the prices."),
  tokens: tokens().optional().describe("Input and output together."),
  input_tokens: tokens().optional(),
  output_tokens: tokens().optional(),
  requests: tokens().optional().describe("Answered requests."),
};

const NO_AMOUNT = `name at least one of ${Object.keys(AMOUNTS).join(", ")}`;

function hasAmount(limit: { [Name in keyof typeof AMOUNTS]?: number | undefined }): boolean {
  return Object.keys(AMOUNTS).some((name) => limit[name as keyof typeof AMOUNTS] !== undefined);
}

const BEHAVIOUR = {
  window: budgetWindow().describe(
    "minute, hour, day, week or month of the calendar; or a duration such as 24h, the time up to now.",
  ),
  strict: z
    .boolean()
    .default(false)
    .describe("true: what a request may cost at most has to fit. false: it is let in while anything is left."),
  warn_at: z
    .array(z.number().gt(0, "must be above 0").max(1, "must be at most 1"))
    .max(10)
    .default([0.8])
    .describe("Shares of the limit at which an event is sent, each once in a window; the whole limit always is one."),
  when_exceeded: z
    .union([z.enum(["refuse", "warn"]), z.strictObject({ use_model: text() })], {
      error: "expected refuse, warn, or {use_model: a model}",
    })
    .default("refuse")
    .describe("refuse: answer 429. warn: an event, no more. use_model: this model answers in place of the other."),
  reset_at: timestamp().optional().describe("What was spent before does not count (POST /admin/budgets/{id}/reset)."),
};

/** As many subjects of a rule are reset in one window. */
const MOST_RESETS = 1_000;

/** The budget of one key, and of one organization. */
export const ownBudget = () => z.strictObject({ ...AMOUNTS, ...BEHAVIOUR }).refine(hasAmount, NO_AMOUNT);

/** Tokens per minute of one key. */
export const tokenLimit = () => tokens().min(1, "must be at least 1");

const names = (what: string) =>
  z
    .union([text(), z.array(text()).min(1, "name at least one, or leave the key out")], {
      error: "expected a name, or a list of names",
    })
    .transform((written) => [written].flat())
    .optional()
    .describe(`${what}; * stands for any text. Left out: all.`);

const ruleSchema = z.strictObject({
  id: z
    .string()
    .regex(/^[A-Za-z0-9][\w.-]{0,63}$/, "expected a name of letters, digits, dots, dashes and underscores")
    .describe("Its name in answers, events, metrics and the admin API."),
  match: z
    .strictObject({
      key: names("Ids of keys"),
      user: names("Users, as the keys name them"),
      organization: names("Organizations, as the keys name them"),
      model: names("Models"),
      backend: names("Backends"),
    })
    .prefault({})
    .describe("The requests that it counts: all of these have to hold. Empty: every request."),
  limit: z.strictObject(AMOUNTS).refine(hasAmount, NO_AMOUNT),
  per: z
    .enum(["key", "user", "organization", "model"])
    .optional()
    .describe("Every one of these has a budget of its own. Left out: they share one."),
  reset_subjects: z
    .record(text().max(256), timestamp())
    .refine((resets) => Object.keys(resets).length <= MOST_RESETS, `name at most ${MOST_RESETS}`)
    .optional()
    .describe("Names of `per`, with the time before which what they spent does not count."),
  ...BEHAVIOUR,
});

export const budgetsSection = defineSection({
  isExtension: true,
  reload: "immediate",
  restartFields: ["path"],
  description: "How much may be spent in a window: money, tokens or requests. Keys may carry a budget of their own.",
  schema: z.strictObject({
    currency: text()
      .max(8, "must have at most 8 characters")
      .optional()
      .describe("Of all prices and amounts, a word for people. Default: admin.stats.currency."),
    time_zone: timeZone().describe("Of the windows of the calendar."),
    path: text().default("./data/budgets.db").describe("What was spent. A path below ./data lies in server.data_dir."),
    rules: z.array(ruleSchema).max(10_000).prefault([]),
  }),
  filePaths: { path: { use: "written", endings: [".db", ".sqlite", ".sqlite3"] } },
  entryNames: { rules: ["id"] },
});

export type BudgetRule = z.output<typeof ruleSchema>;
export type OwnBudget = z.output<ReturnType<typeof ownBudget>>;

/** The budget behind a token_limit. */
export function tokensPerMinute(tokens: number): OwnBudget {
  return { tokens, window: { rollingMs: 60_000 }, strict: false, warn_at: [], when_exceeded: "refuse" };
}
