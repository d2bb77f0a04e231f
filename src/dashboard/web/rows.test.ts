import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { csvText, drawnRows, sortRows } from "./rows.ts";

describe("sorted rows", () => {
  test("are by number or by name, and end with those that have nothing", () => {
    expect(sortRows([3, null, 1, undefined, 20], (value) => value, false)).toEqual([1, 3, 20, null, undefined]);
    expect(sortRows([3, null, 1], (value) => value, true)).toEqual([3, 1, null]);
    expect(sortRows(["gpu-10", "gpu-2", "Gpu-1"], (name) => name, false)).toEqual(["Gpu-1", "gpu-2", "gpu-10"]);
  });

  test("keep their order where they are equal", () => {
    const rows = [0, 1, 2, 3].map((place) => ({ place, value: place % 2 }));
    expect(sortRows(rows, ({ value }) => value, true).map(({ place }) => place)).toEqual([1, 3, 0, 2]);
  });
});

describe("a long list", () => {
  test("is drawn whole while it is short", () => {
    expect(drawnRows(200, 40, 5_000, 800)).toEqual({ first: 0, end: 200, above: 0, below: 0 });
  });

  test("property: what the window shows is drawn, and the rest has its height", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 100_000 }),
        fc.integer({ min: 1, max: 200 }),
        fc.integer({ min: -2_000, max: 30_000_000 }),
        fc.integer({ min: 1, max: 5_000 }),
        (count, rowHeight, scrolled, windowHeight) => {
          const { first, end, above, below } = drawnRows(count, rowHeight, scrolled, windowHeight);
          expect(above + below + (end - first) * rowHeight).toBe(count * rowHeight);
          const top = Math.floor(scrolled / rowHeight);
          const bottom = Math.ceil((scrolled + windowHeight) / rowHeight);
          for (const row of [top, bottom - 1]) {
            if (row >= 0 && row < count) expect(row >= first && row < end).toBe(true);
          }
          expect(end - first).toBeLessThanOrEqual(Math.max(200, Math.ceil(windowHeight / rowHeight) + 41));
        },
      ),
    );
  });
});

test("a table for a spreadsheet holds no formula, and quotes what it has to", () => {
  expect(
    csvText(
      ["model", "ms"],
      [
        ["gpt, 4", 12.5],
        ['say "hi"', null],
        ["=1+1", -3],
      ],
    ),
  ).toBe('model,ms\r\n"gpt, 4",12.5\r\n"say ""hi""",\r\n\'=1+1,-3\r\n');
});
