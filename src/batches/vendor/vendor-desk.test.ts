// The lines of a batch at vendors: when they are sent, what is done with answers that cannot be taken in yet, and what becomes of
// budgets.

import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "../../../test/support/wait-for.ts";
import { ByteAllowance } from "../../lib/byte-allowance.ts";
import { type BatchLine, NO_SUMS, type StoredBatch } from "../batch-store.ts";
import { createPatience } from "../patience.ts";
import type { VendorBatchApi, VendorResult } from "./vendor-api.ts";
import { KEPT_BYTES, VendorDesk } from "./vendor-desk.ts";
import type { KeptBudget, VendorTurn } from "./vendor-turn.ts";

const folder = mkdtempSync(join(tmpdir(), "signalbox-desk-"));
afterAll(() => rmSync(folder, { recursive: true }));

const log = { info() {}, warn() {} };
const FACTS = {
  owner: "anonymous",
  creator: {},
  format: "files",
  endpoint: "/v1/chat/completions",
  status: "in_progress",
};
const TIMES = { createdAt: 0, expiresAt: 86_400, sums: NO_SUMS, faults: [], completed: 0, failed: 0 };
const ADDRESS = { backend: "b", model: "m", path: "/v1/chat/completions", headers: {}, arms: [] };
let batches = 0;

interface Bench {
  desk: VendorDesk;
  batch: StoredBatch;
  created: number[];
  begun: number[];
  memory: ByteAllowance;
  offer(position: number, kept?: KeptBudget, body?: Uint8Array): Promise<boolean>;
}

interface Told {
  results?: readonly VendorResult[];
  answered?: (line: BatchLine, turn: VendorTurn) => Promise<boolean>;
  collectingMs?: number;
}

async function benchOf({ results = [], answered = async () => true, collectingMs }: Told): Promise<Bench> {
  const batch = { id: `batch_${++batches}`, total: 10, ...FACTS, ...TIMES } as unknown as StoredBatch;
  const [created, begun]: [number[], number[]] = [[], []];
  const lineAt = (position: number): BatchLine => {
    return { position, customId: `line ${position}`, body: new Blob(["{}"]), isAskedAgain: false };
  };
  const api: VendorBatchApi = {
    upload: async () => "uploaded",
    async create({ lines }) {
      created.push(lines);
      return `vendor-${created.length}`;
    },
    find: async () => undefined,
    isOver: async () => true,
    async *results() {
      yield* results;
    },
    cancel: async () => {},
    forget: async () => {},
  };
  const memory = new ByteAllowance(2 * KEPT_BYTES);
  const desk = await VendorDesk.open({
    ...{ batch, api, memory, log, answered },
    patience: createPatience(log),
    held: {
      folder: join(folder, batch.id),
      hold: () => true,
      isDone: () => false,
      notSent: async () => {},
      line: async (position) => lineAt(position),
      async begin(position) {
        begun.push(position);
        return lineAt(position);
      },
    },
    mayUse: () => true,
    wallTime: () => 0,
    changed() {},
    ...(collectingMs !== undefined && { collectingMs }),
  });
  const offer = async (position: number, kept?: KeptBudget, body: Uint8Array = Buffer.from("{}")) =>
    (await desk.turnOf(lineAt(position))?.offer({ ...ADDRESS, body, kept })) === true;
  return { desk, batch, created, begun, memory, offer };
}

test("lines that were collected are sent after a time, though others are still to come", async () => {
  const { offer, created, desk } = await benchOf({ collectingMs: 20 });
  expect(await offer(1)).toBe(true);
  expect(await offer(2)).toBe(true);
  // In two batches where the machine was busy for longer than that.
  await waitFor("the lines are sent", () => created.reduce((sum, lines) => sum + lines, 0) === 2);
  desk.stop();
});

test("a batch of a vendor has room for what the vendor's format adds to each line", async () => {
  const { offer, created, desk } = await benchOf({});
  const body = Buffer.alloc(4 * 1024 * 1024 - 50, " ");
  for (const position of [0, 1, 2, 3]) expect(await offer(position, undefined, body)).toBe(true);
  desk.flush();
  await waitFor("the lines are sent", () => created.length === 2);
  expect(created.toSorted()).toEqual([1, 3]);
  desk.stop();
});

test("an answer that cannot be taken in yet is kept until it can", async () => {
  let tries = 0;
  const answer = { status: 200, body: Buffer.from("{}") };
  const { offer, desk, batch } = await benchOf({
    results: [{ position: 3, answer }],
    answered: async () => ++tries === 2,
  });
  await offer(3);
  desk.flush();
  await waitFor("the line is over", () => !desk.isBusy);
  expect(tries).toBe(2);
  expect(desk.hasReleased).toBe(false);
  expect(batch.atVendors).toBe(0);
});

test("a line without an answer is asked one by one, without what was set aside for it", async () => {
  let released = 0;
  const { offer, desk, begun, memory } = await benchOf({});
  const kept = { release: () => void released++ };
  expect(await offer(4, kept)).toBe(true);
  expect(await offer(5, kept)).toBe(true);
  // No more are kept.
  expect(await offer(6, kept)).toBe(false);
  desk.flush();
  await waitFor("the lines come back", () => desk.hasReleased);
  expect(released).toBe(2);
  expect(memory.take(2 * KEPT_BYTES)).toBe(true);
  const lines = [await desk.nextReleased(), await desk.nextReleased()];
  expect(lines.map((line) => line?.position).sort()).toEqual([4, 5]);
  expect(begun.toSorted()).toEqual([4, 5]);
  expect(desk.turnOf(lines[0] as BatchLine)).toBeUndefined();
  await waitFor("nothing is left", () => !desk.isBusy);
});
