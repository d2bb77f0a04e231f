import { expect, test } from "bun:test";
import type { LookupAddress } from "node:dns";
import { hostname } from "node:os";
import { createHostLookup } from "./host-lookup.ts";

function lookups() {
  let nowMs = 0;
  const lookup = createHostLookup(() => nowMs);
  return {
    wait: (durationMs: number) => {
      nowMs += durationMs;
    },
    ask: (host: string) =>
      new Promise<string | LookupAddress[]>((resolve) =>
        lookup(host, { all: true }, (error, addresses) => resolve(error?.code ?? (addresses as LookupAddress[]))),
      ),
  };
}

test("both addresses of this machine are tried, whatever the system lists", async () => {
  const addresses = await lookups().ask("localhost");
  expect((addresses as LookupAddress[]).map(({ address }) => address)).toEqual(["127.0.0.1", "::1"]);
});

test("an answer is kept for half a minute", async () => {
  const { ask, wait } = lookups();
  const first = await ask(hostname());
  expect(first).toBeArray();
  expect(await ask(hostname())).toBe(first);
  wait(30_001);
  const second = await ask(hostname());
  expect(second).toEqual(first);
  expect(second).not.toBe(first);
});

test("a host without an address is none, each time", async () => {
  const { ask } = lookups();
  for (let turn = 0; turn < 2; turn++) expect(await ask("nowhere.invalid")).toMatch(/^(ENOTFOUND|EAI_AGAIN|ENODATA)$/);
});
