// Keys whose end is near: each is told once seven days and once a day before it, over restarts too.

import { readFile } from "node:fs/promises";
import type { KeyIdentity } from "../access/key-identity.ts";
import type { KeyStore } from "../access/key-store.ts";
import type { Settings } from "../config/sections/registry.ts";
import { createPrivateFile } from "../lib/private-file.ts";
import { replaceFile } from "../lib/replace-file.ts";
import { storageMessage } from "../lib/storage-message.ts";

/** Of the key store: keys that end between two times. */
type StoredEnds = KeyStore["ending"];

interface ExpiringKeysParts {
  /** Absolute: what was told. */
  path: string;
  identify: KeyIdentity;
  wallTime(): number;
  log: { warn(fields: object, message: string): void };
}

const DAY_MS = 86_400_000;
const MAX_FILE_BYTES = 64 * 1024 * 1024;

export function createExpiringKeys({ path, identify, wallTime, log }: ExpiringKeysParts) {
  /** Key, end and days -> the end. */
  let told: Map<string, number> | undefined;

  async function read(): Promise<Map<string, number>> {
    const content = await readFile(path, "utf8").catch(() => "[]");
    try {
      const entries: unknown = content.length > MAX_FILE_BYTES ? [] : JSON.parse(content);
      const isEntry = (entry: unknown): entry is [string, number] =>
        Array.isArray(entry) && typeof entry[0] === "string" && typeof entry[1] === "number";
      return new Map(Array.isArray(entries) ? entries.filter(isEntry) : []);
    } catch {
      return new Map();
    }
  }

  async function write(entries: Map<string, number>): Promise<void> {
    try {
      createPrivateFile(path);
      await replaceFile(path, JSON.stringify([...entries]), 0o600);
    } catch (error) {
      const message = "the record of notified expiring keys cannot be written; a restart notifies again";
      log.warn({ path, reason: storageMessage(error) }, message);
    }
  }

  return {
    /** Keys that were not told yet. */
    async look(
      keys: Settings["api_keys"]["keys"],
      stored: StoredEnds,
    ): Promise<{ key: string; endsMs: number; days: number }[]> {
      told ??= await read();
      const nowMs = wallTime();
      const found: { key: string; endsMs: number; days: number }[] = [];
      for (const [mark, endsMs] of told) if (endsMs <= nowMs) told.delete(mark);
      const written = keys.flatMap((entry) => {
        const { expires_at: endsMs } = entry;
        return endsMs === undefined || endsMs <= nowMs || endsMs > nowMs + 7 * DAY_MS ? [] : [{ entry, endsMs }];
      });
      const ends = written.map(({ entry, endsMs }) => ({ id: identify(entry), endsMs }));
      for (const { id: key, endsMs } of [...ends, ...stored(nowMs, nowMs + 7 * DAY_MS)]) {
        const days = endsMs - nowMs <= DAY_MS ? 1 : 7;
        const mark = JSON.stringify([key, endsMs, days]);
        if (told.has(mark)) continue;
        told.set(mark, endsMs);
        found.push({ key, endsMs, days });
      }
      if (found.length > 0) await write(told);
      return found;
    },
  };
}
