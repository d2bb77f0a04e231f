// Copies files for backups: private, whole on the disk, and with a checksum of what was written.

import { Database } from "bun:sqlite";
import { chmod, mkdir, open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { createPrivateFile } from "../lib/private-file.ts";

export interface Checksum {
  bytes: number;
  sha256: string;
}

const PIECE_BYTES = 1024 * 1024;
/** A gateway that writes in this moment is waited for this long. */
const BUSY_TIMEOUT_MS = 10_000;

/** The target must not be there. Rejects with the file system's error. */
export async function copyFile(source: string, target: string): Promise<Checksum> {
  await using from = await open(source, "r");
  await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  await using to = await open(target, "wx", 0o600);
  const checksum = await readThrough(from, (piece) => to.writeFile(piece));
  await to.sync();
  return checksum;
}

/**
 * One moment of a database, also while others write to it. Resolves with undefined, and leaves nothing, where the file is too
 * damaged to be read as a database.
 */
export async function copyDatabase(source: string, target: string): Promise<Checksum | undefined> {
  createPrivateFile(target);
  try {
    using sqlite = new Database(source, { readonly: true, strict: true });
    sqlite.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    sqlite.query("VACUUM INTO ?").run(target);
  } catch (error) {
    const { code } = error as { code?: unknown };
    await rm(target, { force: true });
    if (typeof code === "string" && /^SQLITE_(CORRUPT|NOTADB)/.test(code)) return undefined;
    throw error;
  }
  await chmod(target, 0o600);
  await using copy = await open(target, "r+");
  await copy.sync();
  return await readThrough(copy);
}

/** Rejects with the file system's error. */
export async function checksumOf(path: string): Promise<Checksum> {
  await using file = await open(path, "r");
  return await readThrough(file);
}

type OpenFile = Awaited<ReturnType<typeof open>>;

async function readThrough(file: OpenFile, take?: (piece: Uint8Array) => Promise<void>): Promise<Checksum> {
  const hash = new Bun.CryptoHasher("sha256");
  const buffer = Buffer.alloc(PIECE_BYTES);
  let bytes = 0;
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, PIECE_BYTES, bytes);
    if (bytesRead === 0) return { bytes, sha256: hash.digest("hex") };
    const piece = buffer.subarray(0, bytesRead);
    hash.update(piece);
    await take?.(piece);
    bytes += bytesRead;
  }
}
