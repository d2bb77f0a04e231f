// The log of a batch on disk: records are appended in groups, each of which is synced once, and read again after a crash.

import { type FileHandle, open } from "node:fs/promises";
import { LineReader } from "../lib/line-reader.ts";
import { writeAll } from "./buffered-file.ts";
import type { Patience } from "./patience.ts";
import { type LogRecord, readRecord } from "./records.ts";

/** Answers of backends are bounded far below. */
const MAX_RECORD_BYTES = 1024 ** 3;

interface WaitingRecord {
  text: string;
  resolve(): void;
  reject(error: unknown): void;
}

export class ResultLog {
  readonly #file: FileHandle;
  readonly #patience: Patience;
  #size: number;
  #waiting: WaitingRecord[] = [];
  #writing: Promise<void> | undefined;

  /** @param size - of the whole records in it; what is behind them goes */
  static async open(path: string, size: number, patience: Patience): Promise<ResultLog> {
    const file = await open(path, "r+");
    await file.truncate(size);
    return new ResultLog(file, size, patience);
  }

  private constructor(file: FileHandle, size: number, patience: Patience) {
    this.#file = file;
    this.#size = size;
    this.#patience = patience;
  }

  /** Resolves when a power cut no longer loses the record; rejects only at the end of everything. */
  add(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ text, resolve, reject });
      this.#writing ??= this.#write();
    });
  }

  async close(): Promise<void> {
    await this.#writing;
    await this.#file.close();
  }

  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#waiting;
      this.#waiting = [];
      try {
        const bytes = Buffer.from(group.map(({ text }) => text).join(""));
        await this.#patience.until(async () => {
          await writeAll(this.#file, bytes, this.#size);
          await this.#file.datasync();
        });
        this.#size += bytes.byteLength;
        for (const { resolve } of group) resolve();
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    this.#writing = undefined;
  }
}

/** The whole records of a log, each with the place behind it. The first line that is none ends it. */
export async function* readLog(path: string): AsyncGenerator<{ record: LogRecord; end: number }, void> {
  const lines = new LineReader(MAX_RECORD_BYTES);
  let end = 0;
  for await (const bytes of Bun.file(path).stream()) {
    for (const line of lines.read(bytes)) {
      const record = line === "too-long" ? undefined : readRecord(line);
      if (record === undefined) return;
      end += line.length + 1;
      yield { record, end };
    }
  }
}
