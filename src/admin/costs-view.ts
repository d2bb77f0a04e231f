// What the tokens cost, as the admin API tells it (GET /admin/stats/costs): per key and model, or by one of the names, or by
// day; of all time or of a window.

import type { StatsCollector } from "../stats/collector.ts";
import { addSums, noCosts } from "../stats/costs.ts";
import type { CostNames, CostSums } from "../stats/written-stats.ts";
import { badParameter, readTime, readWindow, WINDOW_MS } from "./query.ts";

const DAY_MS = 86_400_000;
export const COST_WINDOW_MS: Readonly<Record<string, number>> = { ...WINDOW_MS, "30d": 30 * DAY_MS };

/** In place of the day of what is so old that only its sum is kept. */
const EARLIER = "(earlier)";

/** What can be asked for with `by`, and the member that its rows are told by. */
const GROUPS = {
  key: "key_id",
  user: "user_id",
  organization: "organization_id",
  model: "model_id",
  backend: "backend_name",
  day: "day",
} as const satisfies Record<string, keyof CostNames | "day">;

export const COST_GROUPS = Object.keys(GROUPS) as (keyof typeof GROUPS)[];

type Names = Partial<CostNames> & { day?: string };

/** Without `by`: per key and model. Throws 400 for a parameter that makes no sense. */
export function costsView(collector: StatsCollector, query: URLSearchParams) {
  const by = readGroup(query);
  const { sinceMs, untilMs } = readTimes(collector, query);
  const groups = new Map<string, Names & CostSums>();
  let total = 0;
  for (const { fromMs, row } of collector.costs(sinceMs, untilMs)) {
    const names = namesOf(row, by, fromMs);
    const key = Object.values(names).join("\u0000");
    const group = groups.get(key) ?? { ...names, ...noCosts() };
    addSums(group, row);
    groups.set(key, group);
    total += row.cost;
  }
  const total_cost = rounded(total);
  const rows = [...groups.values()]
    .sort((a, b) => b.cost - a.cost || b.prompt_tokens - a.prompt_tokens)
    .map((row) => ({ ...row, cost: rounded(row.cost) }));
  if (by === undefined) {
    const keys = rows.map(({ cached_tokens: _, ...row }) => row);
    return { total_cost, keys };
  }
  if (by === "day") rows.sort((a, b) => ((a.day ?? "") < (b.day ?? "") ? 1 : -1));
  return { total_cost, by, rows };
}

function namesOf(row: CostNames, by: keyof typeof GROUPS | undefined, fromMs: number | undefined): Names {
  if (by === undefined) return { key_id: row.key_id, model_id: row.model_id };
  if (by === "day") return { day: fromMs === undefined ? EARLIER : new Date(fromMs).toISOString().slice(0, 10) };
  return { [GROUPS[by]]: row[GROUPS[by]] };
}

function readGroup(query: URLSearchParams): keyof typeof GROUPS | undefined {
  const text = query.get("by");
  if (text === null) return undefined;
  if (Object.hasOwn(GROUPS, text)) return text as keyof typeof GROUPS;
  throw badParameter("by", `one of ${COST_GROUPS.join(", ")}`);
}

function readTimes(collector: StatsCollector, query: URLSearchParams): { sinceMs?: number; untilMs?: number } {
  const sinceMs = readTime(query, "since");
  const untilMs = readTime(query, "until");
  const { ms } = readWindow(query, COST_WINDOW_MS);
  if (ms === undefined) {
    return { ...(sinceMs !== undefined && { sinceMs }), ...(untilMs !== undefined && { untilMs }) };
  }
  if (sinceMs !== undefined || untilMs !== undefined)
    throw badParameter("window", "left out where 'since' or 'until' is given");
  return { sinceMs: collector.nowMs - ms };
}

/** Millionths are enough. */
function rounded(cost: number): number {
  return Math.round(cost * 1e6) / 1e6;
}
