// What the tokens cost, as the admin API tells it (GET /admin/stats/costs, GET /admin/usage): per key and model, or by other
// names, or by day; of all time or of a window.

import type { StatsCollector } from "../stats/collector.ts";
import { addSums, NONE, noCosts } from "../stats/costs.ts";
import { OTHER } from "../stats/counted.ts";
import type { CostNames, CostSums } from "../stats/written-stats.ts";
import { badParameter, readTimes, type Times } from "./query.ts";

/** In place of the day of what is so old that only its sum is kept. */
const EARLIER = "(earlier)";

/** Names that rows may have together. */
const MAX_GROUPS = 3;

/** Values of `by`, with the member that names their rows. */
const GROUPS = {
  key: "key_id",
  user: "user_id",
  organization: "organization_id",
  model: "model_id",
  backend: "backend_name",
  day: "day",
} as const satisfies Record<string, keyof CostNames | "day">;

export const COST_GROUPS = Object.keys(GROUPS) as GroupName[];

type GroupName = keyof typeof GROUPS;

/** Of which key, model or day: of whatever the rows are grouped by. */
type Names = Partial<CostNames> & { day?: string };

export type CostGroup = Names & CostSums;

/** Without `by`: per key and model. Throws 400 for a parameter that makes no sense. */
export function costsView(collector: StatsCollector, query: URLSearchParams) {
  const by = readGroups(query, 1)?.[0];
  const { rows, total, unpriced_models } = sumUp(
    collector,
    by === undefined ? ["key", "model"] : [by],
    readTimes(query, collector.nowMs),
  );
  const total_cost = rounded(total.cost);
  const { currency } = collector.settings;
  if (by !== undefined) return { total_cost, currency, unpriced_models, by, rows };
  const keys = rows.map(({ cached_tokens: _, key_id = "", model_id = "", ...row }) => ({ key_id, model_id, ...row }));
  return { total_cost, currency, unpriced_models, keys };
}

/** The same for GET /admin/usage, which takes several names at once and shows the sum of everything. */
export function usageView(collector: StatsCollector, query: URLSearchParams) {
  const by = readGroups(query, MAX_GROUPS) ?? ["key"];
  const times = readTimes(query, collector.nowMs);
  const { rows, total, unpriced_models } = sumUp(collector, by, times);
  return {
    by,
    ...framed(collector, times, unpriced_models),
    total: { ...total, cost: rounded(total.cost) },
    rows,
  };
}

/** The same of one key; names that stand for several callers are of none. */
export function ownUsageView<Group extends GroupName>(
  collector: StatsCollector,
  keyId: string,
  by: readonly Group[],
  query: URLSearchParams,
) {
  const times = readTimes(query, collector.nowMs);
  const isNobody = keyId === NONE || keyId === OTHER;
  const { rows, total, unpriced_models } = sumUp(collector, by, times, (row) => !isNobody && row.key_id === keyId);
  return {
    by,
    ...framed(collector, times, unpriced_models),
    total: { ...total, cost: rounded(total.cost) },
    rows,
  };
}

function framed({ settings }: StatsCollector, { sinceMs, untilMs }: Times, unpriced_models: string[]) {
  return {
    currency: settings.currency,
    unpriced_models,
    since: sinceMs === undefined ? null : new Date(sinceMs).toISOString(),
    until: untilMs === undefined ? null : new Date(untilMs).toISOString(),
  };
}

/** In the order of the columns of a table. */
export function memberOf(group: GroupName): (typeof GROUPS)[GroupName] {
  return GROUPS[group];
}

/** The dearest first, and days from the newest on. */
function sumUp(
  collector: StatsCollector,
  by: readonly GroupName[],
  { sinceMs, untilMs }: Times,
  counts: (row: CostNames) => boolean = () => true,
) {
  const groups = new Map<string, CostGroup>();
  const total = noCosts();
  const unpriced = new Set<string>();
  for (const { fromMs, row } of collector.costs(sinceMs, untilMs)) {
    if (!counts(row)) continue;
    const names = namesOf(row, by, fromMs);
    const key = Object.values(names).join("\u0000");
    const group = groups.get(key) ?? { ...names, ...noCosts() };
    addSums(group, row);
    groups.set(key, group);
    addSums(total, row);
    if (row.cost === 0 && !collector.hasPrice(row.model_id, row.backend_name)) unpriced.add(row.model_id);
  }
  const rows = [...groups.values()]
    .sort((a, b) => compareDays(a.day ?? "", b.day ?? "") || b.cost - a.cost || b.prompt_tokens - a.prompt_tokens)
    .map((row) => ({ ...row, cost: rounded(row.cost) }));
  return { rows, total, unpriced_models: [...unpriced].sort() };
}

/** Newest first; costs so old that their day is no longer known come last. */
function compareDays(a: string, b: string): number {
  if (a === b) return 0;
  if (a === EARLIER || b === EARLIER) return a === EARLIER ? 1 : -1;
  return a < b ? 1 : -1;
}

function namesOf(row: CostNames, by: readonly GroupName[], fromMs: number | undefined): Names {
  const names: Names = {};
  for (const group of by) {
    if (group === "day") names.day = fromMs === undefined ? EARLIER : new Date(fromMs).toISOString().slice(0, 10);
    else names[GROUPS[group]] = row[GROUPS[group]];
  }
  return names;
}

function readGroups(query: URLSearchParams, most: number): GroupName[] | undefined {
  const text = query.get("by");
  if (text === null) return undefined;
  const names = text.split(",");
  const isKnown = names.every((name) => Object.hasOwn(GROUPS, name)) && new Set(names).size === names.length;
  if (isKnown && names.length <= most) return names as GroupName[];
  const several = most > 1 ? `, or up to ${most} of them with commas between` : "";
  throw badParameter("by", `one of ${COST_GROUPS.join(", ")}${several}`);
}

/** To a millionth. */
function rounded(cost: number): number {
  return Math.round(cost * 1e6) / 1e6;
}
