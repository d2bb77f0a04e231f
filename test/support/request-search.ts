// Requests as the admin API tells them, of stories in memory.

import { explainRequest as explain, listRequests as listFrom } from "../../src/admin/request-query.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createRequestSearch } from "../../src/request-log/search.ts";
import type { Stories } from "../../src/stats/stories.ts";

const searchOf = (stories: Stories) => createRequestSearch({ stories, log: undefined, clock: systemClock });

export async function explainRequest(stories: Stories, id: string): Promise<object> {
  return await explain(searchOf(stories), stories, id);
}

export async function listRequests(stories: Stories, query: string): Promise<object> {
  const caller = { signal: new AbortController().signal, nowMs: systemClock.wallTime() };
  return await listFrom(searchOf(stories), stories, new URLSearchParams(query), caller);
}
