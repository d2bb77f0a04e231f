// Answers that pages show: when they are asked for again, and what is shown meanwhile.

import { afterEach, expect, test } from "bun:test";
import { signal } from "@preact/signals";
import { waitFor } from "../../../../test/support/wait-for.ts";
import { ApiError } from "./api.ts";
import { createResource } from "./resource.ts";

const NOW_MS = 1_000_000_000_000;
const ends: (() => void)[] = [];
afterEach(() => ends.splice(0).forEach((end) => void end()));

/** An API whose answers are given one by one. */
function bench() {
  const asked: { path: string; signal: AbortSignal; answer(value: unknown): void; refuse(error: ApiError): void }[] =
    [];
  const api = {
    now: () => NOW_MS,
    get: <Answer>(path: string, signal?: AbortSignal) =>
      new Promise<Answer>((resolve, reject) => {
        asked.push({
          path,
          signal: signal as AbortSignal,
          answer: resolve as (value: unknown) => void,
          refuse: reject,
        });
      }),
  };
  return { api, asked };
}

const isHidden = () => false;

/** A resource that has its first answer. */
async function known() {
  const { api, asked } = bench();
  const resource = createResource<string>(api, () => "list", { isHidden });
  ends.push(resource.end);
  await waitFor("it is asked for", () => asked.length === 1);
  asked[0]?.answer("known");
  await waitFor("it is there", () => resource.data.value === "known");
  return { asked, resource };
}

test("a path that changes is asked for, and an answer to an earlier one is not shown", async () => {
  const { api, asked } = bench();
  const filter = signal("a");
  const resource = createResource<string>(api, () => `list?filter=${filter.value}`, { isHidden });
  ends.push(resource.end);
  await waitFor("it is asked for", () => asked.length === 1);
  expect(resource.isLoading.value).toBe(true);
  filter.value = "b";
  filter.value = "c";
  await waitFor("the change is asked for", () => asked.length === 2);
  expect(asked.map(({ path }) => path)).toEqual(["list?filter=a", "list?filter=c"]);
  expect(asked[0]?.signal.aborted).toBe(true);
  asked[1]?.answer("of c");
  asked[0]?.answer("of a");
  await waitFor("it is there", () => resource.data.value === "of c");
  expect(resource.loadedAtMs.value).toBe(NOW_MS);
  expect(resource.isLoading.value).toBe(false);
});

test("one that is not asked for again by itself is tried again where the gateway was away", async () => {
  const { asked, resource } = await known();
  void resource.refresh();
  asked[1]?.refuse(new ApiError(0, "The gateway cannot be reached."));
  await waitFor("the failure is known", () => resource.error.value !== undefined);
  expect(resource.data.value).toBe("known");
  await waitFor("it is tried again", () => asked.length === 3);
  asked[2]?.answer("news");
  await waitFor("it is there again", () => resource.data.value === "news");
  expect(resource.error.value).toBeUndefined();
});

test("what the gateway refuses is not shown any more", async () => {
  const { asked, resource } = await known();
  void resource.refresh();
  asked[1]?.refuse(new ApiError(404, "There is no such request."));
  await waitFor("it is gone", () => resource.data.value === undefined);
  expect(resource.error.value?.message).toBe("There is no such request.");
});

test("it is asked for again as long as its answers want that", async () => {
  const { api, asked } = bench();
  const everyMs = (answer: string | undefined) => (answer === "running" ? 1 : undefined);
  const resource = createResource<string>(api, () => "story", { everyMs, isHidden });
  ends.push(resource.end);
  await waitFor("it is asked for", () => asked.length === 1);
  asked[0]?.answer("running");
  await waitFor("it is asked for again", () => asked.length === 2);
  asked[1]?.answer("done");
  await waitFor("it is done", () => resource.data.value === "done");
  void resource.refresh();
  expect(asked.length).toBe(3); // by us
});
