// Kills a process at random moments of uploads and deletes: what was told stays told, and the list and the disk agree.
// The long form: SIGNALBOX_CRASH_ROUNDS=100.

import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger } from "../logging/logger.ts";
import { createFileStore } from "./store.ts";

const ROUNDS = Number(process.env.SIGNALBOX_CRASH_ROUNDS ?? 6);
/** The file system dates what is written within one tick alike. */
const TICK_MS = 20;

const open = (folder: string) =>
  createFileStore({ folder, retentionSeconds: () => undefined, wallTime: Date.now, log: silentLogger() });

/** Runs in the child: tells of each file when it is stored ("+"), when it is to be deleted ("?") and when it is ("-"). */
const CHILD = `
  import { writeSync } from "node:fs";
  import { createFileStore } from ${JSON.stringify(join(import.meta.dir, "store.ts"))};
  const folder = process.argv.at(-1);
  const log = { info() {}, warn(fields, message) { throw new Error(message + JSON.stringify(fields)); } };
  const store = createFileStore({ folder, retentionSeconds: () => undefined, wallTime: Date.now, log });
  const tell = (...words) => writeSync(1, words.join(" ") + "\\n");
  const facts = { owner: "key:a", filename: "a", mediaType: "text/plain", purpose: "batch" };
  const piece = () => crypto.getRandomValues(new Uint8Array(Math.floor(Math.random() * 65_536)));
  async function work() {
    const own = [];
    for (;;) {
      const incoming = store.receive({ maxFileBytes: 1e9, maxTotalBytes: 0 });
      for (let pieces = Math.floor(Math.random() * 6); pieces > 0; pieces--) await incoming.write(piece());
      if (Math.random() < 0.1) {
        incoming.discard();
        continue;
      }
      const { id, sha256, bytes } = await incoming.finish({ ...facts, expiresAfterSeconds: undefined });
      tell("+", id, sha256, bytes);
      own.push(id);
      if (Math.random() < 0.6) {
        const [gone] = own.splice(Math.floor(Math.random() * own.length), 1);
        tell("?", gone);
        if (!(await store.delete("key:a", gone))) throw new Error("not found");
        tell("-", gone);
      }
    }
  }
  await Promise.all([work(), work(), work(), work()]);
`;

interface Told {
  /** Id to hash and size. */
  stored: Map<string, string>;
  begun: Set<string>;
  deleted: Set<string>;
}

/** Kills the child a while after its first word. */
async function runAndKill(folder: string, told: Told): Promise<void> {
  const child = Bun.spawn([process.execPath, "-e", CHILD, "--", folder], { stdout: "pipe", stderr: "inherit" });
  let output = "";
  let isKilled = false;
  for await (const chunk of child.stdout) {
    output += Buffer.from(chunk).toString();
    if (isKilled) continue;
    isKilled = true;
    setTimeout(() => child.kill("SIGKILL"), Math.random() * 60);
  }
  await child.exited;
  expect(child.signalCode).toBe("SIGKILL");
  for (const line of output.split("\n").slice(0, -1)) {
    const [sign, id = "", ...facts] = line.split(" ");
    if (sign === "+") told.stored.set(id, facts.join(" "));
    else if (sign === "?") told.begun.add(id);
    else told.deleted.add(id);
  }
}

function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

test(
  `${ROUNDS} kills`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "file-crash-"));
    const told: Told = { stored: new Map(), begun: new Set(), deleted: new Set() };
    let broken = 0;
    try {
      for (let round = 0; round < ROUNDS; round++) {
        await runAndKill(folder, told);
        await Bun.sleep(TICK_MS);
        const leftBehind = filesIn(folder).filter((name) => name.startsWith("file-")).length;
        const store = open(folder);
        expect(await store.recovered).toBeDefined();
        const { files } = await store.list("key:a", { limit: 10_000, order: "asc" });
        broken += leftBehind - files.length;

        const listed = files.map(({ id }) => id);
        expect(filesIn(join(folder, "contents")).sort()).toEqual(listed.toSorted());
        expect(filesIn(join(folder, "incoming"))).toEqual([]);
        const mustBe = [...told.stored.keys()].filter((id) => !told.begun.has(id));
        expect(mustBe.filter((id) => !listed.includes(id))).toEqual([]);
        expect(listed.filter((id) => told.deleted.has(id))).toEqual([]);
        for (const file of files) {
          const found = new Bun.CryptoHasher("sha256").update(await store.read(file)).digest("hex");
          expect(found).toBe(file.sha256);
          const asTold = told.stored.get(file.id);
          if (asTold !== undefined) expect(`${found} ${file.bytes}`).toBe(asTold);
        }
        const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
        expect(store.usage()).toMatchObject({ count: files.length, bytes });
        store.close();
      }
      if (ROUNDS > 15) {
        const counts = `${told.stored.size} stored, ${told.deleted.size} deleted, ${broken} broken off`;
        await Bun.write(Bun.stderr, `${ROUNDS} kills: ${counts}\n`);
      }
      expect(told.stored.size).toBeGreaterThan(ROUNDS);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
  ROUNDS * 5_000,
);
