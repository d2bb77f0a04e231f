import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { FILE_FORMAT } from "../file-format.ts";
import { takeIn } from "../take-in.ts";
import { cutSegments, readSegment } from "./segments.ts";

const root = mkdtempSync(join(tmpdir(), "segments-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

async function* of(text: string): AsyncGenerator<Uint8Array, void> {
  yield Buffer.from(text);
}

/** The bodies and ids of all segments, in order, and how many lines each has. */
async function throughSegments(inputs: readonly string[]) {
  const bodies = inputs.map((content) => JSON.stringify({ model: "m", content }));
  const lines = bodies.map(
    (body, index) => `{"custom_id":"ü-${index}","method":"POST","url":"/v1/embeddings","body":${body}}\n`,
  );
  const folder = join(root, crypto.randomUUID());
  await takeIn(of(lines.join("")), { format: FILE_FORMAT, endpoint: "/v1/embeddings", folder, maxLines: 10_000 });
  const found: string[] = [];
  const ids: string[] = [];
  const sizes: number[] = [];
  for await (const bytes of cutSegments(folder)) {
    const path = join(folder, "segment");
    await Bun.write(path, bytes);
    const { first, entries, headBytes } = await readSegment(path);
    expect(first).toBe(ids.length);
    for (const [offset, length, customId] of entries) {
      ids.push(customId);
      found.push(
        await Bun.file(path)
          .slice(headBytes + offset, headBytes + offset + length)
          .text(),
      );
    }
    sizes.push(entries.length);
    await Bun.write(path, bytes.subarray(0, -1));
    await expect(readSegment(path)).rejects.toThrow("a segment is damaged");
  }
  expect(found).toEqual(bodies);
  expect(ids).toEqual(bodies.map((_, index) => `ü-${index}`));
  return sizes;
}

test("all lines are in one segment each, in order, with the bytes of their bodies", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.string({ unit: "binary" }), { maxLength: 250 }), async (inputs) => {
      const sizes = await throughSegments(inputs);
      expect(sizes.every((size) => size <= 100)).toBe(true);
    }),
    { numRuns: 8 },
  );
});

test("segments are bounded in bytes, and a longer line is one of its own", async () => {
  const [small, half, large] = ["x", "x".repeat(600_000), "x".repeat(3_000_000)];
  expect(await throughSegments([small, half, half, small, large, small, small])).toEqual([2, 2, 1, 2]);
});
