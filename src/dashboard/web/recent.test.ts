// The last minutes: every request counts once, however often the connection was lost while they were read.

import { afterEach, expect, test } from "bun:test";
import { signal } from "@preact/signals";
import { waitFor } from "../../../test/support/wait-for.ts";
import type { RequestRow, Requests } from "../../admin/request-schemas.ts";
import type { LiveState } from "./app/live.ts";
import { followRequests } from "./recent.ts";

const NOW_MS = 1_000_000_000_000;
const ends: (() => void)[] = [];
afterEach(() => ends.splice(0).forEach((end) => void end()));

function row(id: string, endedMs: number): RequestRow {
  const started_at = new Date(endedMs - 10).toISOString();
  return { id, started_at, duration_ms: 10, finished: true, stream: false, first_byte_ms: null } as RequestRow;
}

test("a reading that another one overtakes adds nothing more", async () => {
  const asked: { path: string; answer(list: Requests): void }[] = [];
  let tell: (event: string, data: unknown) => void = () => {};
  const live = {
    state: signal<LiveState>("connecting"),
    listen(listener: typeof tell) {
      tell = listener;
      return () => {};
    },
  };
  const recent = followRequests({
    api: {
      get: (path: string) => new Promise((answer) => asked.push({ path, answer: answer as never })),
      now: () => NOW_MS,
    },
    live: live as never,
  });
  ends.push(recent.end);
  const newer = { requests: [row("b", NOW_MS - 50_000)], total: 2, searched_since: null, next_cursor: "b" };
  const older = { requests: [row("a", NOW_MS - 90_000)], total: 2, searched_since: null, next_cursor: null };
  const total = () => recent.points(NOW_MS).reduce((sum, point) => sum + (point?.total ?? 0), 0);
  asked[0]?.answer(newer);
  await waitFor("the next page is asked for", () => asked.length === 2);
  expect(total()).toBe(1);
  // The live events begin: what has happened until then is read again.
  live.state.value = "live";
  await waitFor("all is asked for again", () => asked.length === 3);
  expect(total()).toBe(1); // what is known stays until there is more
  const sums = { total: 5, failed: 0, avg_duration_ms: 10, max_duration_ms: 10, avg_first_byte_ms: null };
  const event = { ...sums, prompt_tokens: 0, completion_tokens: 0, requests: [] };
  tell("request", { at: new Date(NOW_MS - 10_000).toISOString(), ...event });
  asked[1]?.answer(older);
  asked[2]?.answer(newer);
  await waitFor("the next page is asked for again", () => asked.length === 4);
  expect(total()).toBe(6);
  asked[3]?.answer(older);
  await waitFor("both are there, and what was told meanwhile", () => total() === 7);
  expect(asked.map(({ path }) => path.includes("cursor=b"))).toEqual([false, true, false, true]);
  expect(recent.latest.value.map(({ id }) => id)).toEqual(["b"]);
});
