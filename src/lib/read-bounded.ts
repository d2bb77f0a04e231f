// Reads a stream whole, within a bound.

/**
 * All bytes, or undefined (and the stream given up) when there are more than the limit. `onChunk` is called for
 * each piece within it as it arrives; what it throws ends the reading.
 */
export async function readBounded(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  onChunk?: (bytes: number, chunk: Uint8Array) => void,
): Promise<Uint8Array | undefined> {
  if (body === null) return new Uint8Array(0);
  const reader = body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  const chunks: Uint8Array[] = [];
  let totalBytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, totalBytes);
    totalBytes += value.length;
    if (totalBytes > maxBytes) {
      await reader.cancel();
      return undefined;
    }
    onChunk?.(value.length, value);
    chunks.push(value);
  }
}
