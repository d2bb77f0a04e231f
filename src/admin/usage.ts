// GET /admin/usage: who has used what, and what it costs, as JSON or as a table for a spreadsheet.

import type { JsonSchema } from "../config/schema/schema-export.ts";
import { TIME_FORMS } from "../lib/parse-time.ts";
import {
  count,
  described,
  list,
  namedShape,
  number,
  oneOfTexts,
  orNull,
  type Properties,
  schemasOf,
  shape,
  text,
  texts,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, queryParameter } from "../openapi/operation.ts";
import type { Call } from "../server/endpoint.ts";
import { COST_GROUPS, type CostGroup, memberOf, usageView } from "./costs-view.ts";
import { type Cell, toCsv } from "./csv.ts";
import { type AnswerWith, adminGroup, answer } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { badParameter, groupsPattern, queryOf, timeText, WINDOW_NAMES } from "./query.ts";
import { requireStats } from "./stats-view.ts";

const sums = {
  requests: count,
  prompt_tokens: count,
  completion_tokens: count,
  cached_tokens: described(count, "Of the prompt tokens, those that were read from a backend's cache."),
  cost: described(number, "By the prices of the model metadata, in their currency."),
};
const SUMS = Object.keys(sums) as (keyof CostGroup)[];
const names: Properties = Object.fromEntries(COST_GROUPS.map((group) => [memberOf(group), text]));

export const UsageReport = namedShape("Usage", {
  by: list(oneOfTexts(...COST_GROUPS)),
  currency: described(text, "Of all costs (admin.stats.currency)."),
  unpriced_models: described(texts, "Models whose tokens have no price, so that their cost is 0."),
  since: orNull(time),
  until: orNull(time),
  total: shape(sums),
  rows: list(shape(sums, names)),
});

export type UsageReport = ValueOf<typeof UsageReport>;

const SCHEMAS = schemasOf(UsageReport);

const FORMATS = ["json", "csv"] as const;
const several: JsonSchema = described(
  { ...text, pattern: groupsPattern(COST_GROUPS, 3) },
  `One of ${COST_GROUPS.join(", ")}, or up to three of them with commas between.`,
);

const endpoint = adminGroup("Observation", SCHEMAS);

export function usageRoutes({ collector }: Pick<AdminParts, "collector">): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/usage", {
      id: "getUsage",
      role: "viewer",
      summary: "Requests, tokens and costs",
      description:
        "By key, user, organization, model, backend or day: the dearest first, days from the newest on. Counted by the hour, and what is older than eight days by the day; hours and days that a time touches count as a whole. Kept over restarts.",
      parameters: [
        queryParameter("by", "What the rows are about; left out: key.", several),
        queryParameter("window", "Left out: since the last reset.", oneOfTexts(...WINDOW_NAMES)),
        queryParameter("since", `In place of a window: ${TIME_FORMS}.`, timeText),
        queryParameter("until", "The same, exclusive.", timeText),
        queryParameter("format", "csv: a table to keep (RFC 4180).", { ...oneOfTexts(...FORMATS), default: "json" }),
      ],
      answers: [
        {
          ...jsonAnswer(UsageReport, "The usage; as CSV with a column for each name and sum, and a line for each row."),
          types: ["text/csv"],
        },
      ],
      errors: [404],
      handle(call) {
        const query = queryOf(call);
        const format = query.get("format") ?? "json";
        if (!(FORMATS as readonly string[]).includes(format))
          throw badParameter("format", `one of ${FORMATS.join(", ")}`);
        const usage = usageView(requireStats(collector), query);
        return format === "json"
          ? answer(call, usage)
          : (table(call, usage, collector.nowMs) as AnswerWith<UsageReport>);
      },
    }),
  ];
}

function table({ headers }: Call, { by, rows }: ReturnType<typeof usageView>, nowMs: number) {
  const columns = [...by.map(memberOf), ...SUMS];
  const cells = rows.map((row) => columns.map((column): Cell => row[column] ?? ""));
  const day = new Date(nowMs).toISOString().slice(0, 10);
  return new Response(toCsv(columns, cells), {
    headers: {
      ...headers,
      "Content-Type": "text/csv; charset=utf-8; header=present",
      "Content-Disposition": `attachment; filename="signalbox-usage-by-${by.join("-")}-${day}.csv"`,
      "X-Content-Type-Options": "nosniff",
      "Cache-Control": "no-store",
    },
  });
}
