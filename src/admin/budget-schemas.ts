// Requests and answers of the admin API for budgets, as JSON Schema.

import { AMOUNT_NAMES } from "../budgets/amounts.ts";
import { changed, entryDryRun, madeFor } from "../openapi/change-schemas.ts";
import {
  anyOf,
  component,
  count,
  described,
  flag,
  list,
  mapOf,
  namedShape,
  number,
  oneOfTexts,
  orNull,
  schemasOf,
  shape,
  strictRequest,
  text,
  texts,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { entryPatch, entrySchema } from "../openapi/section-schemas.ts";

const amount = { amount: oneOfTexts(...AMOUNT_NAMES) };

const state = shape({
  ...amount,
  limit: described(number, "Costs in the currency."),
  spent: number,
  held: described(number, "Set aside for requests under way."),
  remaining: number,
  share: described(number, "Of the limit, spent."),
  forecast: described(orNull(number), "Spent at the end of the window, if it goes on like this; null for a duration."),
});

const spending = {
  cost: number,
  input_tokens: count,
  output_tokens: count,
  requests: count,
};

export const BudgetRecord = namedShape("Budget", {
  id: text,
  key: described(orNull(text), "The key that carries it; null: a rule of the section budgets."),
  match: shape({}, { key: texts, user: texts, organization: texts, model: texts, backend: texts }),
  window: text,
  per: orNull(oneOfTexts("key", "user", "organization", "model")),
  strict: flag,
  warn_at: list(number),
  when_exceeded: anyOf(oneOfTexts("refuse", "warn"), shape({ use_model: text })),
  reset_at: orNull(time),
  reset_subjects: described(mapOf(time), "Of a budget with per: those that were reset by themselves, and when."),
  since: described(time, "When the window began that goes on."),
  until: described(time, "When what is spent now begins to be forgotten."),
  subject: described(orNull(text), "Of a budget with per: the one that has spent most of its limit."),
  limits: list(state),
});
export type BudgetRecord = ValueOf<typeof BudgetRecord>;

export const BudgetList = namedShape("BudgetList", {
  currency: text,
  time_zone: text,
  budgets: list(BudgetRecord),
  total: count,
});

export const BudgetUsage = namedShape("BudgetUsage", {
  budget: BudgetRecord,
  currency: text,
  subjects: described(
    list(shape({ subject: orNull(text), share: number, ...spending })),
    "Who has spent in the window that goes on, those with most first; subject is null where all share one budget.",
  ),
  history: described(
    list(shape({ since: time, until: time, subject: orNull(text), ...spending })),
    "Window by window, the latest first; of a duration its parts.",
  ),
});
export type BudgetUsage = ValueOf<typeof BudgetUsage>;

export const BudgetChange = component("BudgetChange", () => {
  const change = entryPatch(entrySchema("budgets", "rules"));
  return described(change, "Fields of an entry of budgets.rules; null removes one.");
});

export const BudgetChanged = namedShape("BudgetChanged", { ...changed, budget: BudgetRecord }, entryDryRun);
export const BudgetRemoved = namedShape("BudgetRemoved", { ...changed, removed_budget: BudgetRecord }, entryDryRun);
export const BudgetReset = component(
  "BudgetReset",
  strictRequest(
    {},
    {
      reason: described({ ...text, maxLength: 200 }, "Stands in the history of the configuration."),
      subject: described(
        { ...text, minLength: 1, maxLength: 256 },
        "Of a rule with per: the key, user, organization or model that begins from nothing; left out: all of them.",
      ),
      ...madeFor,
    },
  ),
);

export const BUDGET_SCHEMAS = schemasOf(
  BudgetList,
  BudgetRecord,
  BudgetUsage,
  BudgetChange,
  BudgetChanged,
  BudgetRemoved,
  BudgetReset,
);
