// Kills the gateway at random moments of uploads and deletions over HTTP: what a client was told stays true, and the list
// and the disk agree. The long form: SIGNALBOX_CRASH_ROUNDS=100.

import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { ProcessGateway } from "../support/gateway-process.ts";
import { type FileObject, filePart, PURPOSE, sendForm, waitUntilClean } from "../support/stored-files.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

const ROUNDS = Number(process.env.SIGNALBOX_CRASH_ROUNDS ?? 4);
const CLIENTS = 4;
const LARGEST_BYTES = 400_000;
/** A round lasts at most this long behind its first answer. */
const LONGEST_RUN_MS = 120;

/** What clients know when the gateway is killed. */
interface Told {
  /** Id to the hash of what was sent. */
  stored: Map<string, string>;
  /** Every hash that was ever sent: a file whose answer was lost may be there, and is whole then. */
  sent: Set<string>;
  /** Deletions that were asked for; those of which the answer came. */
  asked: Set<string>;
  deleted: Set<string>;
}

const hashOf = (bytes: Uint8Array) => new Bun.CryptoHasher("sha256").update(bytes).digest("hex");

/** One client uploads and deletes until nobody answers. */
async function work(gateway: ProcessGateway, told: Told, answered: () => void): Promise<void> {
  const own: string[] = [];
  for (;;) {
    const bytes = crypto.getRandomValues(new Uint8Array(65_536)).subarray(0, 1 + Math.floor(Math.random() * 65_535));
    bytes[0] = 0x78; // chance makes the beginning of a sound or a picture otherwise, which no text has
    const content = Buffer.concat(
      Array.from({ length: Math.ceil((Math.random() * LARGEST_BYTES) / 65_536) }, () => bytes),
    );
    const hash = hashOf(content);
    told.sent.add(hash);
    const response = await sendForm(gateway, [PURPOSE, filePart(content)]).catch(() => undefined);
    const file = (await response?.json().catch(() => undefined)) as FileObject | undefined;
    if (response === undefined || file === undefined) return;
    expect(response.status).toBe(200);
    told.stored.set(file.id, hash);
    own.push(file.id);
    answered();
    if (Math.random() < 0.4) continue;
    const [id = ""] = own.splice(Math.floor(Math.random() * own.length), 1);
    told.asked.add(id);
    const removal = await gateway.fetch(`/v1/files/${id}`, { method: "DELETE" }).catch(() => undefined);
    if ((await removal?.json().catch(() => undefined)) === undefined) return;
    expect(removal?.status).toBe(200);
    told.deleted.add(id);
  }
}

async function workUntilKilled(gateway: ProcessGateway, told: Told): Promise<void> {
  const ended = gateway.process.finished();
  let isAnswered = false;
  const answered = () => {
    if (isAnswered) return;
    isAnswered = true;
    setTimeout(() => gateway.process.kill("SIGKILL"), Math.random() * LONGEST_RUN_MS);
  };
  await Promise.all(Array.from({ length: CLIENTS }, () => work(gateway, told, answered)));
  await ended;
}

/** All that lies below files.path, without the list and its lock. */
function others(gateway: ProcessGateway): string[] {
  const entries = readdirSync(join(gateway.folder, "data", "files"), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && !/^files\.(db|lock)(-\w+)?$/.test(entry.name))
    .map(({ name }) => name);
}

async function check(gateway: ProcessGateway, told: Told): Promise<void> {
  const response = await gateway.fetch("/v1/files?order=asc");
  const { data } = (await response.json()) as { data: FileObject[] };
  const listed = data.map(({ id }) => id);
  expect(others(gateway).sort()).toEqual(listed.toSorted());
  expect([...told.stored.keys()].filter((id) => !told.asked.has(id) && !listed.includes(id))).toEqual([]);
  expect(listed.filter((id) => told.deleted.has(id))).toEqual([]);
  for (const { id, bytes } of data) {
    const content = await (await gateway.fetch(`/v1/files/${id}/content`)).bytes();
    expect(content.length).toBe(bytes);
    const hash = hashOf(content);
    expect(hash).toBe(told.stored.get(id) ?? hash);
    expect(told.sent).toContain(hash);
  }
  const usage = (await (await gateway.fetch("/admin/files")).json()) as { count: number; bytes: number };
  expect([usage.count, usage.bytes]).toEqual([data.length, data.reduce((sum, { bytes }) => sum + bytes, 0)]);
}

test(
  `${ROUNDS} kills`,
  async () => {
    const told: Told = { stored: new Map(), sent: new Set(), asked: new Set(), deleted: new Set() };
    const gateway = await bed.process({
      config: { backends: [{ name: "demo", type: "demo" }], logging: { access_log: false } },
    });
    const counts = { brokenOff: 0, withoutAnswer: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      await workUntilKilled(gateway, told);
      const left = others(gateway).length;
      await gateway.restart({ awaitHealth: false });
      await waitUntilClean(gateway);
      await check(gateway, told);
      const found = others(gateway);
      counts.brokenOff += left - found.length;
      counts.withoutAnswer += found.filter((id) => !told.stored.has(id)).length;
      // The next round begins with few files, so that it costs what the first one did.
      for (const id of found) {
        told.asked.add(id);
        expect((await gateway.fetch(`/v1/files/${id}`, { method: "DELETE" })).status).toBe(200);
        told.deleted.add(id);
      }
    }
    expect(told.stored.size).toBeGreaterThanOrEqual(ROUNDS);
    if (ROUNDS > 6) {
      const { stored, deleted } = told;
      await Bun.write(
        Bun.stderr,
        `${ROUNDS} kills: ${stored.size} uploads and ${deleted.size} deletions were answered; ` +
          `${counts.brokenOff} contents of broken uploads removed, ${counts.withoutAnswer} files kept whose answer was lost\n`,
      );
    }
  },
  ROUNDS * 10_000,
);
