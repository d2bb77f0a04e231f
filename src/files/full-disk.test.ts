// A disk that is full: a small file system of its own for root, else a process whose files may not grow beyond 6 MB.

import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "full-disk-"));
const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], { stderr: "ignore" });
const isSmallDisk = mounted.exitCode === 0;
afterAll(() => {
  if (isSmallDisk) expect(Bun.spawnSync(["umount", folder]).exitCode).toBe(0);
  rmSync(folder, { recursive: true, force: true });
});

/** Tells at the end what it saw. */
const CHILD = `
  import { appendFileSync, readdirSync, rmSync, writeSync } from "node:fs";
  import { createFileStore } from ${JSON.stringify(join(import.meta.dir, "store.ts"))};
  const folder = process.argv.at(-1);
  const log = { info() {}, warn() {} };
  const store = createFileStore({ folder, retentionSeconds: () => undefined, wallTime: Date.now, log });
  await store.recovered;
  const facts = { owner: "key:a", filename: "a", mediaType: "text/plain", purpose: "batch" };
  async function upload(pieces) {
    const incoming = store.receive({ maxFileBytes: 1e9, maxTotalBytes: 0 });
    for (let count = 0; count < pieces; count++) await incoming.write(new Uint8Array(65_536).fill(count));
    return incoming.finish({ ...facts, expiresAfterSeconds: undefined });
  }
  const codeOf = (attempt) => attempt.then((file) => file.id, (error) => error.status + " " + error.code);
  const onDisk = () => readdirSync(folder, { recursive: true }).filter((name) => /file-[^/]*$/.test(name)).length;
  const listed = async () => (await store.list("key:a", { limit: 10, order: "asc" })).files.length;
  const seen = {};
  const small = await upload(2);
  seen.large = await codeOf(upload(200));
  seen.sideBySide = new Set(await Promise.all([1, 2, 3, 4].map(() => codeOf(upload(120)))));
  seen.sideBySide = [...seen.sideBySide];
  seen.afterwards = [onDisk(), await listed(), store.usage().count];
  seen.whole = new Bun.CryptoHasher("sha256").update(await store.read(small)).digest("hex") === small.sha256;
  seen.again = /^file-/.test(await codeOf(upload(1)));

  for (let size = 65_536; size > 0; size = Math.floor(size / 2)) {
    try {
      for (let count = 0; count < 200; count++) appendFileSync(folder + "/filler", new Uint8Array(size));
    } catch {}
  }
  // The list itself cannot grow either, sooner or later.
  const files = [];
  for (let count = 0; count < 100; count++) files.push(await codeOf(upload(0)));
  seen.refusedRows = files.includes("503 storage_full");
  seen.agrees = onDisk() === store.usage().count;
  seen.deleted = await store.delete("key:a", small.id);
  seen.found = (await store.find("key:a", small.id)) !== undefined;
  rmSync(folder + "/filler");
  seen.atTheEnd = /^file-/.test(await codeOf(upload(2))) && onDisk() === store.usage().count;
  writeSync(1, JSON.stringify(seen));
`;

test("uploads are refused and leave nothing, what is stored stays, and deleting makes room", async () => {
  const command = [process.execPath, "-e", CHILD, "--", join(folder, "files")];
  const limited = ["sh", "-c", `trap '' XFSZ; ulimit -f 12000; exec "$@"`, "sh", ...command];
  const child = Bun.spawn(isSmallDisk ? command : limited, { stdout: "pipe", stderr: "inherit" });
  const seen = JSON.parse(await new Response(child.stdout).text());
  await child.exited;
  expect(seen).toEqual({
    large: "503 storage_full",
    sideBySide: ["503 storage_full"],
    afterwards: [1, 1, 1],
    whole: true,
    again: true,
    refusedRows: isSmallDisk,
    agrees: true,
    deleted: true,
    found: false,
    atTheEnd: true,
  });
}, 30_000);
