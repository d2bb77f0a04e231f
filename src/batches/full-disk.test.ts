// A disk that is full: files that may not be written, as by a quota, and for root also a small file system of its own.

import { dlopen } from "bun:ffi";
import { afterAll, afterEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { batchesSection } from "../config/sections/batches.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { createFileStore } from "../files/store.ts";
import { NO_SUMS } from "./batch-store.ts";
import { openBatches } from "./store.ts";

const folder = mkdtempSync(join(tmpdir(), "full-disk-"));
const disk = join(folder, "disk");
mkdirSync(disk);
const mounting = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], { stderr: "ignore" });
const isSmallDisk = mounting.exitCode === 0;
afterAll(() => {
  if (isSmallDisk) expect(Bun.spawnSync(["umount", disk]).exitCode).toBe(0);
  rmSync(folder, { recursive: true, force: true });
});

const FILLER = join(disk, "filler");
const LINES = 60;
const OWNER = "key:a";

/** Takes all the room that there is; the function that it returns gives it back. */
type Fill = () => () => void;

const WAYS: [string, Fill][] = [["files that may not be written", limitFileSize]];
if (isSmallDisk) WAYS.push(["a full disk", fillDisk]);

let makeRoom: ReturnType<Fill> | undefined;
/** At the end in any case: the runner goes on in this process. */
function giveBack(): void {
  makeRoom?.();
  makeRoom = undefined;
}
afterEach(giveBack);

function fillDisk(): ReturnType<Fill> {
  for (let size = 1_048_576; size >= 1024; size = Math.floor(size / 2)) {
    for (;;) {
      try {
        writeFileSync(FILLER, new Uint8Array(size), { flag: "a" });
      } catch {
        break;
      }
    }
  }
  return () => rmSync(FILLER);
}

/** Files of this process can no longer be written, as by a quota. */
function limitFileSize(): ReturnType<Fill> {
  const RLIMIT_FSIZE = 1;
  const library = process.platform === "darwin" ? "libSystem.B.dylib" : "libc.so.6";
  const call = { args: ["i32", "ptr"], returns: "i32" } as const;
  const { symbols, close } = dlopen(library, { getrlimit: call, setrlimit: call });
  const limits = new BigUint64Array(2); // the soft one, which may be raised again, and the hard one
  const limit = (softLimit: bigint): bigint => {
    expect(symbols.getrlimit(RLIMIT_FSIZE, limits)).toBe(0);
    const before = limits[0] as bigint;
    limits[0] = softLimit;
    expect(symbols.setrlimit(RLIMIT_FSIZE, limits)).toBe(0);
    return before;
  };
  const ignore = () => {};
  process.on("SIGXFSZ", ignore); // the signal would end the process
  const before = limit(0n);
  return () => {
    limit(before);
    process.off("SIGXFSZ", ignore);
    close();
  };
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await Bun.sleep(10);
}

test.each(WAYS)(
  "%s: new batches are refused, and those under way wait for room",
  async (name, fill) => {
    const told: string[] = [];
    const tell = (fields: object | string, message = fields as string) => void told.push(message);
    const log = { info: tell, warn: tell, error: tell };
    const files = createFileStore({
      folder: join(folder, name),
      retentionSeconds: () => undefined,
      wallTime: Date.now,
      log,
    });
    await files.recovered;
    const asks = new Map<string, number>();
    let isFullAt = 10;
    const settings = batchesSection.schema.parse({});
    const batches = openBatches({
      folder: join(disk, name),
      settings: () => ({ ...settings, retention: 1e9 }),
      wallTime: Date.now,
      files: { inUse: () => Promise.resolve(files), maxTotalBytes: () => 0 },
      async ask(_, { customId }) {
        asks.set(customId, (asks.get(customId) ?? 0) + 1);
        if (--isFullAt === 0) makeRoom = fill();
        const body = JSON.stringify({ text: "x".repeat(20_000) });
        return { status: 200, requestId: "", body, isOutage: false, retryAfterMs: undefined, sums: NO_SUMS };
      },
      counted() {},
      log,
    });
    const incoming = files.receive({ maxFileBytes: 1e9, maxTotalBytes: 0 });
    for (let index = 0; index < LINES; index++) {
      const line = {
        custom_id: `line-${index}`,
        method: "POST",
        url: "/v1/embeddings",
        body: { model: "m", input: "a" },
      };
      await incoming.write(Buffer.from(`${JSON.stringify(line)}\n`));
    }
    const facts = { owner: OWNER, filename: "input", mediaType: "application/jsonl", purpose: "batch" };
    const input = await incoming.finish({ ...facts, expiresAfterSeconds: undefined });
    const asked = {
      owner: OWNER,
      creator: { kind: "none" },
      format: "files",
      endpoint: "/v1/embeddings",
      inputFileId: input.id,
    } as const;

    const { id } = await batches.create(asked);
    await until(() => told.includes("batches wait: their storage, or that of files, cannot be used"));
    expect((await batches.find(OWNER, id))?.status).toBe("in_progress");
    // SQLite may have room left in its own files for some.
    const refusals: GatewayError[] = [];
    while (refusals.length === 0) {
      await batches.create(asked).catch((error) => refusals.push(error));
    }
    expect(refusals[0]).toBeInstanceOf(GatewayError);
    expect(refusals[0]).toMatchObject({ status: 503, code: "storage_full" });
    expect(told.filter((message) => message.startsWith("batches wait"))).toHaveLength(1);

    giveBack();
    await until(async () => (await batches.find(OWNER, id))?.status === "completed");
    expect(told).toContain("batches go on");
    const batch = await batches.find(OWNER, id);
    expect(batch).toMatchObject({ total: LINES, completed: LINES, failed: 0 });
    expect([...asks.values()].every((times) => times === 1)).toBe(true);
    const output = await files.find(OWNER, batch?.outputFileId ?? "");
    const text = await new Response(await files.read(output as NonNullable<typeof output>)).text();
    const ids = text
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { custom_id: string }).custom_id);
    expect(new Set(ids).size).toBe(LINES);
    expect(ids).toHaveLength(LINES);
    await batches.close(1000);
  },
  30_000,
);
