// Section routes: names that stand for a choice of models (docs/routes.md).

import { z } from "zod";
import { queueClass } from "./admission.ts";
import { headerName, oneOrMore, positiveDuration, text, timeZone, whole } from "./fields.ts";
import { defineSection } from "./section.ts";

/** What a request can bring or ask for, as `when[].has` names it. */
export const FEATURES = ["image", "audio", "file", "tools", "json_schema", "reasoning"] as const;

const MOST_ROUTES = 500;
const MOST_TARGETS = 20;
const MOST_CONDITIONS = 50;

/** In every client's format; each format says how it spells them (ClientProtocol.settings). */
const overrides = z
  .strictObject({
    temperature: z.number().min(0).max(2).optional(),
    top_p: z.number().min(0).max(1).optional(),
    max_output_tokens: whole(1).optional(),
    reasoning_effort: z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]).optional(),
    seed: z.int().optional(),
  })
  .refine((given) => Object.keys(given).length > 0, "must set at least one field");

const target = z.strictObject({
  model: text().max(256).describe("A model of a backend, or the name of another route."),
  backend: text().optional().describe("Only this backend is asked. Default: every backend that serves the model."),
  weight: z
    .number()
    .min(0)
    .max(1_000_000)
    .default(1)
    .describe("Its share of the requests, beside those of the others. 0: only asked when the others cannot answer."),
  name: text()
    .max(64)
    .regex(/^[A-Za-z0-9._:/@-]+$/, "expected letters, digits and the signs . _ : / @ -")
    .optional()
    .describe("Its name in headers, metrics and views. Default: the model, with @ and the backend where one is named."),
  set: overrides.optional().describe("Fields of the request that this target gets in place of the client's."),
});

const targets = () =>
  z
    .array(target)
    .min(1, "name at least one target")
    .max(MOST_TARGETS, `must be at most ${MOST_TARGETS} targets`)
    .describe("Between which the requests are shared by weight.");

export const patterns = () => oneOrMore(text().max(256));

const COMPARISON = /^(<|<=|>|>=)\s*\d{1,9}$/;
const HOURS = /^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$/;

/** What a request is looked at for. */
export const conditionFields = {
  input_tokens: z
    .string()
    .regex(COMPARISON, 'expected a comparison such as ">100000" or "<=2000"')
    .optional()
    .describe("About how many tokens the request has."),
  has: oneOrMore(z.enum(FEATURES))
    .optional()
    .describe(`All of these must be there: ${FEATURES.join(", ")}.`),
  key: patterns().optional().describe("Id of the caller's key; * stands for any text. Of several, one must match."),
  user: patterns().optional().describe("The user that the key or the request names."),
  organization: patterns().optional().describe("The organization of the key or token."),
  header: z.record(headerName(), patterns()).optional().describe("Request headers, all of which must match."),
  metadata: z.record(text(), patterns()).optional().describe("Texts in metadata of the request, which must match."),
  hours: z
    .string()
    .regex(HOURS, 'expected a part of the day such as "22:00-06:00"')
    .optional()
    .describe("Part of the day, in time_zone; its end does not belong to it."),
  time_zone: timeZone().describe("Of hours."),
};

/** For refine(): an entry without a condition would hold for everything. */
export const NAMES_A_CONDITION = [
  ({ targets: _, time_zone: __, ...conditions }: { targets?: unknown; time_zone: string }) =>
    Object.keys(conditions).length > 0,
  "must name at least one condition, such as has or input_tokens",
] as const;

const condition = z.strictObject({ ...conditionFields, targets: targets() }).refine(...NAMES_A_CONDITION);

const route = z.strictObject({
  name: text()
    .max(256)
    .regex(/^\P{Cc}+$/u, "must be one line without control characters")
    .describe(
      "What clients ask for. With * for any text it stands for many names; * alone for names that nothing else serves.",
    ),
  targets: targets(),
  when: z
    .array(condition)
    .max(MOST_CONDITIONS, `must be at most ${MOST_CONDITIONS} conditions`)
    .default([])
    .describe("The first whose conditions all hold takes the place of targets."),
  sticky: z
    .enum(["none", "conversation", "user", "key"])
    .default("conversation")
    .describe("Whose requests stay with one target. none, and requests without one: exact shares in turn."),
  class: queueClass()
    .optional()
    .describe("Class of its requests in the queue, where their key names none. Default: default."),
  on_failure: z
    .enum(["next_target", "chain"])
    .default("next_target")
    .describe("next_target: the other targets are asked, then the fallback chain. chain: only the fallback chain."),
  rollback: z
    .strictObject({
      metric: z.enum(["error_rate", "first_token_p95", "cost"]).describe("What is compared."),
      worse_than: z
        .number()
        .gt(1, "must be greater than 1")
        .max(1000)
        .default(1.5)
        .describe("A target is worse from this many times the value of the target with the greatest weight."),
      min_requests: whole(10, 1000).default(50).describe("Requests that both must have had in the window."),
      window: positiveDuration()
        .refine((durationMs) => durationMs <= 86_400_000, "must be at most 24h")
        .prefault("10m"),
    })
    .optional()
    .describe("A target that is worse than the main one gets weight 0, as a change of the configuration."),
  mirror: z
    .strictObject({
      model: text().max(256),
      backend: text().optional(),
      share: z.number().gt(0, "must be greater than 0").max(1).describe("Of the requests, from 0 to 1."),
    })
    .optional()
    .describe("This model gets copies of requests; its answers are measured and thrown away."),
});

export const routesSection = defineSection({
  isExtension: true,
  reload: "immediate",
  description: "Names that clients ask for as models, and the models that answer: by weight, by condition, on trial.",
  schema: z.array(route).max(MOST_ROUTES, `must be at most ${MOST_ROUTES} routes`).prefault([]),
  // Conditions have no names: a list of them is one value.
  entryNames: {
    "": ["name"],
    "*.targets": ["name", "model"],
    "*.when": ["name"],
    "*.when.*.targets": ["name", "model"],
  },
});

export type RouteSettings = z.output<typeof route>;
export type TargetSettings = z.output<typeof target>;
export type ConditionSettings = z.output<typeof condition>;
export type Feature = (typeof FEATURES)[number];
export type Overrides = z.output<typeof overrides>;
