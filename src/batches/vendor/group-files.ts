// The groups of lines that wait for vendors, in a folder of their batch: the lines of each in one file, and what is known of it in
// another, without which the lines were not all collected.

import { existsSync } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "../../lib/replace-file.ts";
import { syncFolder } from "../../lib/sync-folder.ts";
import { writeAll } from "../buffered-file.ts";
import type { KeptAtVendor, SpooledLine, VendorGroup } from "./vendor-api.ts";

export interface StoredGroup extends VendorGroup, KeptAtVendor {
  /** Creating: the vendor may have begun it, and no answer has said so. */
  state: "collected" | "creating" | "created";
  /** A Unix time before the vendor could begin it. */
  sinceMs: number;
}

const FOLDER_NAME = "vendor";
const FACTS = ".json";
const LINES = ".lines";
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const TABULATOR = 9;

export type GroupFiles = ReturnType<typeof createGroupFiles>;

/** Whether an earlier process has left any. */
export function hasGroups(batchFolder: string): boolean {
  return existsSync(join(batchFolder, FOLDER_NAME));
}

/** Everything rejects with the file system's error. */
export function createGroupFiles(batchFolder: string) {
  const folder = join(batchFolder, FOLDER_NAME);
  const place = (name: string, ending: string) => join(folder, `${name}${ending}`);
  return {
    /** Those of an earlier process; lines that were not all collected are removed. */
    async stored(): Promise<StoredGroup[]> {
      const names = hasGroups(batchFolder) ? await readdir(folder) : [];
      const groups: StoredGroup[] = [];
      for (const name of names) {
        if (name.endsWith(FACTS)) groups.push((await Bun.file(join(folder, name)).json()) as StoredGroup);
        else if (!names.includes(name.replace(LINES, FACTS))) await rm(join(folder, name), { force: true });
      }
      return groups;
    },
    async create(name: string): Promise<LineFile> {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      return new LineFile(await open(place(name, LINES), "w", 0o600));
    },
    /** When it resolves, a power cut does not lose it. */
    async save(group: StoredGroup): Promise<void> {
      await replaceFile(place(group.name, FACTS), JSON.stringify(group), 0o600);
      await syncFolder(folder);
    },
    async lines(name: string): Promise<SpooledLine[]> {
      const bytes = await Bun.file(place(name, LINES)).bytes();
      const lines: SpooledLine[] = [];
      for (let start = 0, end = bytes.indexOf(LINE_FEED); end >= 0; end = bytes.indexOf(LINE_FEED, start)) {
        lines.push(bytes.subarray(start, end));
        start = end + 1;
      }
      return lines;
    },
    async remove(name: string): Promise<void> {
      await rm(place(name, FACTS), { force: true });
      await rm(place(name, LINES), { force: true });
    },
  };
}

/** The lines of a group that is being collected. */
export class LineFile {
  readonly #file: FileHandle;
  #size = 0;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  get size(): number {
    return this.#size;
  }

  /** To be awaited before the next one; can be tried again. */
  async append(bytes: Uint8Array): Promise<void> {
    await writeAll(this.#file, bytes, this.#size);
    this.#size += bytes.byteLength;
  }

  sync(): Promise<void> {
    return this.#file.sync();
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

/** A line as it is kept, with its end. Line ends inside of JSON are space. */
export function spooled(position: number, body: Uint8Array): Uint8Array {
  const head = Buffer.from(`${position}\t`);
  const line = Buffer.concat([head, body, Buffer.of(LINE_FEED)]);
  for (let at = head.length; at < line.length - 1; at++) {
    if (line[at] === LINE_FEED || line[at] === CARRIAGE_RETURN) line[at] = SPACE;
  }
  return line;
}

export function readSpooled(line: SpooledLine): { position: number; body: Uint8Array } {
  const tabulator = line.indexOf(TABULATOR);
  return { position: Number(Buffer.from(line.subarray(0, tabulator)).toString()), body: line.subarray(tabulator + 1) };
}
