// Writes the results of a batch into the files of its owner: one file of answers and one of errors, each only where it has a line.

import type { FileStore, IncomingFile } from "../files/file-store.ts";
import type { BatchFormat, Unanswered } from "./batch-format.ts";
import type { LineResult, StoredBatch } from "./batch-store.ts";
import type { BatchWork } from "./batch-work.ts";

const PIECE_BYTES = 256 * 1024;
const PURPOSE = "batch_output";

interface ResultParts {
  store: FileStore;
  /** files.max_total_size */
  maxTotalBytes: number;
  format: BatchFormat;
  batch: StoredBatch;
  work: BatchWork;
  /** What the lines without a result get. */
  why: Unanswered;
  /** An earlier attempt may have stored a file already. */
  isRepeated: boolean;
}

interface WrittenResults {
  outputFileId: string | undefined;
  errorFileId: string | undefined;
  /** Lines without a result. */
  unanswered: number;
}

/** Rejects as the store of files does; nothing of an attempt that failed is kept, or it is found again by the next one. */
export async function writeResults(parts: ResultParts): Promise<WrittenResults> {
  const { format, work, why } = parts;
  const output = new ResultFile(parts, "output");
  const errors = format.hasErrorFile ? new ResultFile(parts, "errors") : output;
  let unanswered = 0;
  try {
    for await (const result of work.results()) await (result.isError ? errors : output).append(result);
    for await (const customId of work.unsettled()) {
      unanswered++;
      await errors.append(format.unanswered(customId, why));
    }
    const outputFileId = await output.finish();
    const errorFileId = errors === output ? undefined : await errors.finish();
    return { outputFileId, errorFileId, unanswered };
  } finally {
    output.discard();
    errors.discard();
  }
}

class ResultFile {
  readonly #parts: ResultParts;
  readonly #filename: string;
  #file: IncomingFile | undefined;
  #lines: string[] = [];
  #buffered = 0;

  constructor(parts: ResultParts, name: string) {
    this.#parts = parts;
    this.#filename = `${parts.batch.id}_${name}.jsonl`;
  }

  async append({ text }: LineResult): Promise<void> {
    this.#lines.push(text, "\n");
    this.#buffered += text.length + 1;
    if (this.#buffered >= PIECE_BYTES) await this.#flush();
  }

  /** The id of the file; undefined where it would be empty. */
  async finish(): Promise<string | undefined> {
    if (this.#lines.length > 0) await this.#flush();
    if (this.#file === undefined) return undefined;
    const { store, batch, isRepeated, format } = this.#parts;
    const owner = format.resultsOwner(batch.owner);
    const known = isRepeated ? await storedEarlier(store, owner, this.#filename) : undefined;
    if (known !== undefined) return known;
    const stored = await this.#file.finish({
      owner,
      filename: this.#filename,
      mediaType: "application/jsonl",
      purpose: PURPOSE,
      expiresAfterSeconds: batch.outputSeconds,
    });
    return stored.id;
  }

  discard(): void {
    this.#file?.discard();
  }

  async #flush(): Promise<void> {
    const { store, maxTotalBytes } = this.#parts;
    this.#file ??= store.receive({ maxFileBytes: Number.POSITIVE_INFINITY, maxTotalBytes });
    const bytes = Buffer.from(this.#lines.join(""));
    this.#lines = [];
    this.#buffered = 0;
    await this.#file.write(bytes);
  }
}

async function storedEarlier(store: FileStore, owner: string, filename: string): Promise<string | undefined> {
  const { files } = await store.list(owner, { limit: 10_000, order: "desc", purpose: PURPOSE });
  return files.find((file) => file.filename === filename)?.id;
}
