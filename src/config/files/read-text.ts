// Reads a small text file, with every way it can fail told in a few words.

import { open } from "node:fs/promises";

/** Far above any real configuration; keeps a wrong path such as /dev/zero from filling the memory. */
export const MAXIMUM_FILE_BYTES = 8 * 1024 * 1024;

const REASONS: Record<string, string> = {
  ENOENT: "there is no such file",
  ENOTDIR: "there is no such file",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EISDIR: "it is a folder, not a file",
  ELOOP: "its symbolic links go in a circle",
};

/** The hash is that of the bytes, as contentHash() makes it. */
export async function readText(path: string): Promise<{ text: string; hash: string } | { message: string }> {
  let bytes: Uint8Array | undefined;
  try {
    bytes = await readBytes(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
    return { message: `cannot be read: ${REASONS[code] ?? code}` };
  }
  if (bytes === undefined) return { message: `is larger than ${MAXIMUM_FILE_BYTES / 1024 / 1024} MiB` };
  try {
    // Removes a byte order mark, which editors on Windows like to add.
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes), hash: contentHash(bytes) };
  } catch {
    return { message: "is not valid UTF-8 text" };
  }
}

export function contentHash(bytes: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}

/** Undefined when there is more than the limit. Sizes are not asked: pipes and /dev/stdin have none. */
export async function readBytes(path: string): Promise<Uint8Array | undefined> {
  const file = await open(path, "r");
  try {
    const chunks: Uint8Array[] = [];
    let total = 0;
    for (;;) {
      const { bytesRead, buffer } = await file.read(new Uint8Array(64 * 1024), 0, 64 * 1024, null);
      if (bytesRead === 0) return Buffer.concat(chunks);
      chunks.push(buffer.subarray(0, bytesRead));
      total += bytesRead;
      if (total > MAXIMUM_FILE_BYTES) return undefined;
    }
  } finally {
    await file.close();
  }
}
