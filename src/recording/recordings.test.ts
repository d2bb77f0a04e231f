import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { documentSchema } from "../config/sections/registry.ts";
import { importedRecording } from "./data-set.ts";
import type { SealedRecording } from "./recording.ts";
import { openRecordings } from "./recordings.ts";
import { sealRecordings } from "./seal-recording.ts";
import { createVault } from "./vault.ts";

const folder = mkdtempSync(join(tmpdir(), "recordings-"));
afterAll(() => rmSync(folder, { recursive: true }));

const vault = createVault(new Uint8Array(32).fill(7));

function opened(name: string, recording: object = {}) {
  const settings = documentSchema.parse({ recording: { enabled: true, ...recording } });
  const warnings: object[] = [];
  const recordings = openRecordings({
    ...{ folder: join(folder, name), settings: () => settings.recording, vault },
    clock: { wallTime: () => 0 },
    ask: () => Promise.reject(new Error("nothing is asked")),
    log: { info() {}, warn: (fields) => warnings.push(fields as object) },
  });
  return { recordings, warnings };
}

/** Each says its own name, and noise that cannot be compressed. */
async function sealed(names: readonly string[], noiseBytes = 0): Promise<SealedRecording[]> {
  const finished = names.map((name) => {
    const noise = crypto.getRandomValues(new Uint8Array(noiseBytes)).toHex();
    const messages = [{ role: "user", content: `${name} ${noise}` }];
    const line = { model: "m", request: { model: "m", messages }, answer: { choices: [] } };
    return { ...importedRecording("set", line, 0), redacts: true };
  });
  return await sealRecordings(finished, vault);
}

const idsOf = (recordings: readonly { id: string }[]) => recordings.map(({ id }) => id).toSorted();

test("recordings that came together are kept together, and each is found by its own words", async () => {
  const { recordings } = opened("together");
  const all = await sealed(["heron", "swan", "ibis"]);
  expect(await recordings.keep(all)).toBe(3);
  const [swan] = await recordings.list({ text: "SWAN" }, { limit: 10 });
  expect(swan?.id).toBe(all[1]?.facts.id as string);
  const bodies = swan && (await recordings.read(swan));
  expect(new TextDecoder().decode(bodies?.request.content)).toContain("swan");
  await recordings.close(0);
});

test("one that cannot be kept does not take the others with it", async () => {
  const { recordings, warnings } = opened("apart");
  const [heron, swan, ibis] = (await sealed(["heron", "swan", "ibis"])) as [
    SealedRecording,
    SealedRecording,
    SealedRecording,
  ];
  expect(await recordings.keep([heron])).toBe(1);
  expect(await recordings.keep([swan, heron, ibis])).toBe(2);
  expect(warnings).toHaveLength(1);
  const kept = await recordings.list({}, { limit: 10 });
  expect(idsOf(kept)).toEqual(idsOf([heron.facts, swan.facts, ibis.facts]));
  expect(recordings.bytes()).toBe(kept.reduce((sum, { bytes }) => sum + bytes, 0));
  await recordings.close(0);
});

test("recordings that came together do not outgrow the bound together", async () => {
  const { recordings } = opened("bound", { max_bytes: 1024 ** 2 });
  const all = await sealed(
    Array.from({ length: 40 }, (_, index) => `word${index}`),
    40_000,
  );
  expect(await recordings.keep(all)).toBe(40);
  expect(recordings.bytes()).toBeLessThanOrEqual(1024 ** 2);
  const kept = await recordings.list({}, { limit: 100 });
  expect(kept.length).toBeGreaterThan(10);
  expect(idsOf(kept)).toEqual(idsOf(all.slice(-kept.length).map(({ facts }) => facts)));
  expect(recordings.bytes()).toBe(kept.reduce((sum, { bytes }) => sum + bytes, 0));
  await recordings.close(0);
});
