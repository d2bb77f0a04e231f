// Keeps what clients say of answers, and tells it.

import type { RequestRecord } from "../stats/request-record.ts";
import type { createFeedbackRows, FeedbackQuery, FeedbackRow } from "./feedback-rows.ts";
import type { Vault } from "./vault.ts";

interface GivenFeedback {
  score: number;
  comment: string | null;
  metadata: object | null;
}

interface ToldFeedback extends GivenFeedback, Omit<FeedbackRow, "sealed"> {}

const sealedAs = (request: string) => `feedback ${request}`;
const ownerOf = ({ keyId }: Pick<FeedbackRow, "keyId">) => `key:${keyId ?? ""}`;

export function createFeedback(rows: ReturnType<typeof createFeedbackRows>, vault: Vault) {
  return {
    /** Returns the score that it replaces. */
    put(record: RequestRecord, { score, comment, metadata }: GivenFeedback, atMs: number): number | undefined {
      const { id, keyId = null, user = null, shownModel: model, route = null, arm = null } = record;
      const content = Buffer.from(JSON.stringify({ comment, metadata }));
      const sealed = vault.seal(ownerOf({ keyId }), sealedAs(id), content);
      return rows.put({ request: id, atMs, keyId, userId: user, model, route, arm, score, sealed });
    },
    list: (query: FeedbackQuery, limit: number): ToldFeedback[] =>
      rows.list(query, limit).map(({ sealed, ...row }) => {
        const content = vault.open(ownerOf(row), sealedAs(row.request), sealed);
        const told = content && JSON.parse(new TextDecoder().decode(content));
        return { ...row, comment: told?.comment ?? null, metadata: told?.metadata ?? null };
      }),
    counts: rows.counts,
  };
}
