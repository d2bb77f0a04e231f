// How lines wait for vendors on the disk.

import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { createGroupFiles, hasGroups, readSpooled, spooled } from "./group-files.ts";

const folder = mkdtempSync(join(tmpdir(), "signalbox-groups-"));
afterAll(() => rmSync(folder, { recursive: true }));

const FACTS = { backend: "b", model: "m", path: "/v1/chat/completions", headers: {}, arms: [] };

test("a line is read as it was written, whatever its spacing", () => {
  fc.assert(
    fc.property(fc.nat(), fc.jsonValue(), fc.constantFrom(undefined, "\t", "\n", 2), (position, value, spacing) => {
      const written = spooled(position, Buffer.from(JSON.stringify({ value }, undefined, spacing)));
      expect(written.indexOf(10)).toBe(written.length - 1);
      const read = readSpooled(written.subarray(0, -1));
      expect(read.position).toBe(position);
      expect(JSON.parse(Buffer.from(read.body).toString())).toEqual(JSON.parse(JSON.stringify({ value })));
    }),
  );
});

test("a group is there once it is saved, and what was not all collected is removed", async () => {
  const files = createGroupFiles(folder);
  expect(hasGroups(folder)).toBe(false);
  for (const name of ["whole", "torn"]) {
    const lines = await files.create(name);
    await lines.append(spooled(7, Buffer.from('{"a":1}')));
    await lines.append(spooled(9, Buffer.from('{"a":2}')));
    await lines.close();
  }
  await files.save({ ...FACTS, name: "whole", lines: 2, state: "collected", sinceMs: 0 });
  const next = createGroupFiles(folder);
  expect(hasGroups(folder)).toBe(true);
  expect(await next.stored()).toEqual([{ ...FACTS, name: "whole", lines: 2, state: "collected", sinceMs: 0 }]);
  expect((await next.lines("whole")).map((line) => readSpooled(line).position)).toEqual([7, 9]);
  expect(await Bun.file(join(folder, "vendor", "torn.lines")).exists()).toBe(false);
  await next.remove("whole");
  expect(await next.stored()).toEqual([]);
});
