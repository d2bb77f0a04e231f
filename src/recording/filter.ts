// Which recordings are meant: by what is known of them, and by words.

import type { RecordingFacts } from "./recording.ts";
import { DIGEST_BYTES, type Vault } from "./vault.ts";

/** Every member that is given must hold. */
export interface RecordingFilter {
  /** All of these words, in the request or the answer. */
  text?: string | undefined;
  ids?: readonly string[] | undefined;
  model?: string | undefined;
  route?: string | undefined;
  arm?: string | undefined;
  backend?: string | undefined;
  key?: string | undefined;
  user?: string | undefined;
  organization?: string | undefined;
  operation?: string | undefined;
  outcome?: string | undefined;
  dataset?: string | undefined;
  /** From the first status to the last one. */
  status?: readonly [from: number, to: number] | undefined;
  minDurationMs?: number | undefined;
  maxDurationMs?: number | undefined;
  /** In 10^-9 of the currency's unit. */
  minCost?: number | undefined;
  maxCost?: number | undefined;
  sinceMs?: number | undefined;
  untilMs?: number | undefined;
}

export type SqlValue = string | number | Uint8Array;

interface SqlCondition {
  sql: string;
  values: SqlValue[];
}

const EQUAL = {
  route: ["route"],
  arm: ["arm"],
  backend: ["backend"],
  key: ["keyId"],
  user: ["userId"],
  organization: ["organizationId"],
  operation: ["operation"],
  outcome: ["outcome"],
  dataset: ["dataset"],
  model: ["model", "answeredBy"],
} as const satisfies Partial<Record<keyof RecordingFilter, readonly (keyof RecordingFacts)[]>>;

const RANGES = {
  minDurationMs: "durationMs >= ?",
  maxDurationMs: "durationMs <= ?",
  minCost: "cost >= ?",
  maxCost: "cost <= ?",
  sinceMs: "atMs >= ?",
  untilMs: "atMs < ?",
} as const;

const NOTHING = new Uint8Array(0);

/** @param digests - of words, as the index has them */
export function toSql(filter: RecordingFilter, digests: Vault["wordDigests"]): SqlCondition {
  const parts: string[] = ["1"];
  const values: SqlValue[] = [];
  for (const [name, columns] of Object.entries(EQUAL)) {
    const wanted = filter[name as keyof typeof EQUAL];
    if (wanted === undefined) continue;
    parts.push(`(${columns.map((column) => `${column} = ?`).join(" OR ")})`);
    values.push(...columns.map(() => wanted));
  }
  for (const [name, sql] of Object.entries(RANGES)) {
    const bound = filter[name as keyof typeof RANGES];
    if (bound === undefined) continue;
    parts.push(sql);
    values.push(bound);
  }
  if (filter.status !== undefined) {
    parts.push("status BETWEEN ? AND ?");
    values.push(...filter.status);
  }
  if (filter.ids !== undefined) {
    parts.push(`id IN (${filter.ids.map(() => "?").join(", ")})`);
    values.push(...filter.ids);
  }
  // A digest that stands across two others is no match in one of some million recordings.
  const words = filter.text === undefined ? NOTHING : digests([filter.text]);
  for (let start = 0; start < words.length; start += DIGEST_BYTES) {
    parts.push("instr(words, ?) > 0");
    values.push(words.subarray(start, start + DIGEST_BYTES));
  }
  return { sql: parts.join(" AND "), values };
}
