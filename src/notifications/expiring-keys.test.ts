// Keys whose end is near, once each, over restarts too.

import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Settings } from "../config/sections/registry.ts";
import { createExpiringKeys } from "./expiring-keys.ts";

const folder = mkdtempSync(join(tmpdir(), "expiring-keys-"));
afterAll(() => rmSync(folder, { recursive: true }));

const DAY_MS = 86_400_000;
const NOW_MS = 100 * DAY_MS;
let nowMs = NOW_MS;

const keysEnding = (...days: number[]) =>
  days.map((each) => ({
    key: "x",
    id: `in-${each}`,
    expires_at: NOW_MS + each * DAY_MS,
  })) as Settings["api_keys"]["keys"];

function started(path = join(folder, "told.json")) {
  const warned: string[] = [];
  const log = { warn: (_: object, message: string) => warned.push(message) };
  const expiring = createExpiringKeys({ path, identify: ({ id = "" }) => id, wallTime: () => nowMs, log });
  return { expiring, warned };
}

test("each is told seven days and one day before its end, and not again by the next process", async () => {
  const keys = keysEnding(-1, 0.5, 6, 8);
  const stored = (afterMs: number, untilMs: number) => {
    const endsMs = NOW_MS + 7.5 * DAY_MS;
    return endsMs > afterMs && endsMs <= untilMs ? [{ id: "stored", endsMs }] : [];
  };
  const told = async (process = started()) =>
    (await process.expiring.look(keys, stored)).map(({ key, days }) => `${key} ${days}`);
  const first = started();
  expect(await told(first)).toEqual(["in-0.5 1", "in-6 7"]);
  expect(await told(first)).toEqual([]);
  expect(await told()).toEqual([]);
  nowMs = NOW_MS + 5.5 * DAY_MS;
  expect(await told()).toEqual(["in-6 1", "in-8 7", "stored 7"]);
  expect(await told()).toEqual([]);
});

test("a file that cannot be written is said, and the keys are told all the same", async () => {
  nowMs = NOW_MS;
  const { expiring, warned } = started("/dev/null/told.json");
  expect(await expiring.look(keysEnding(1), () => [])).toHaveLength(1);
  expect(await expiring.look(keysEnding(1), () => [])).toEqual([]);
  expect(warned).toHaveLength(1);
});
