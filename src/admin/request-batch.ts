// Requests that have ended since the last live event: how many, what they came to, and a few of them.

import { isFailure } from "../stats/outcome.ts";
import type { RequestRecord } from "../stats/request-record.ts";
import type { Stories } from "../stats/stories.ts";
import { requestRow } from "./request-view.ts";

/** Those that are listed one by one: those that failed or were refused go first. */
const MAX_ROWS = 10;

export class RequestBatch {
  readonly #stories: Pick<Stories, "startedAt">;
  #unanswered: RequestRecord[] = [];
  #others: RequestRecord[] = [];
  #sums = newSums();

  constructor(stories: Pick<Stories, "startedAt">) {
    this.#stories = stories;
  }

  get isEmpty(): boolean {
    return this.#sums.total === 0;
  }

  add(story: RequestRecord): void {
    const sums = this.#sums;
    sums.total++;
    sums.durationMs += story.durationMs ?? 0;
    sums.longestMs = Math.max(sums.longestMs, story.durationMs ?? 0);
    sums.promptTokens += story.promptTokens ?? 0;
    sums.completionTokens += story.completionTokens ?? 0;
    if (story.firstByteMs !== undefined) {
      sums.firstBytes++;
      sums.firstByteMs += story.firstByteMs;
    }
    const isFailed = story.outcome !== undefined && isFailure(story.outcome);
    if (isFailed) sums.failed++;
    if (story.outcome === "refused") sums.refused++;
    if (story.outcome === "client_left") sums.left++;
    const rows = isFailed || story.outcome === "refused" ? this.#unanswered : this.#others;
    if (rows.length < MAX_ROWS) rows.push(story);
  }

  /** The data of one event; `intervalMs` is the time that it stands for. */
  take(intervalMs: number): object {
    const told = [...this.#unanswered, ...this.#others].slice(0, MAX_ROWS);
    const { total, failed, refused, left, durationMs, longestMs, firstBytes, firstByteMs, ...tokens } = this.#sums;
    const data = {
      interval_ms: Math.round(intervalMs),
      total,
      failed,
      refused,
      client_left: left,
      avg_duration_ms: Math.round(durationMs / total),
      max_duration_ms: Math.round(longestMs),
      avg_first_byte_ms: firstBytes === 0 ? null : Math.round(firstByteMs / firstBytes),
      prompt_tokens: tokens.promptTokens,
      completion_tokens: tokens.completionTokens,
      requests: told.map((story) => requestRow(this.#stories, story)),
      omitted: total - told.length,
    };
    this.clear();
    return data;
  }

  clear(): void {
    this.#unanswered = [];
    this.#others = [];
    this.#sums = newSums();
  }
}

function newSums() {
  return {
    total: 0,
    failed: 0,
    refused: 0,
    left: 0,
    durationMs: 0,
    longestMs: 0,
    firstBytes: 0,
    firstByteMs: 0,
    promptTokens: 0,
    completionTokens: 0,
  };
}
