// Which trace a request belongs to, and whether it is recorded.

import { expect, test } from "bun:test";
import { createIds, isSampled, newSpanId, placeOf, traceparentOf } from "./ids.ts";

const newId = createIds();
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const from = (id: string, traceparent?: string) => ({ id, traceparent, tracestate: undefined });

test("ids are random, and none comes twice", () => {
  const ids = Array.from({ length: 5_000 }, () => newSpanId(newId));
  expect(new Set(ids).size).toBe(5_000);
  for (const id of ids.slice(0, 100)) expect(id).toMatch(/^[0-9a-f]{16}$/);
  expect(newId(32)).toMatch(/^[0-9a-f]{32}$/);
});

test("a client's traceparent decides, whatever the ratio is", () => {
  for (const ratio of [0, 0.5, 1]) {
    const recorded = placeOf(from(TRACE, `00-${TRACE}-${SPAN}-01`), ratio, newId);
    expect(recorded).toEqual({ traceId: TRACE, parentSpanId: SPAN, flags: 1 });
    expect(isSampled(recorded)).toBe(true);
    expect(isSampled(placeOf(from(TRACE, `00-${TRACE}-${SPAN}-00`), ratio, newId))).toBe(false);
  }
});

test("of the flags those are kept that are known; later versions may say more", () => {
  expect(placeOf(from(TRACE, `00-${TRACE}-${SPAN}-ff`), 1, newId).flags).toBe(3);
  expect(placeOf(from(TRACE, `cc-${TRACE}-${SPAN}-02-more`), 1, newId)).toMatchObject({ flags: 2, parentSpanId: SPAN });
  expect(traceparentOf({ traceId: TRACE, parentSpanId: undefined, flags: 3 }, SPAN)).toBe(`00-${TRACE}-${SPAN}-03`);
});

test("the id of a request is that of its trace where it can be", () => {
  const uuid = "4BF92F35-77b3-4da6-a3ce-929d0e0e4736";
  expect(placeOf(from(uuid), 1, newId).traceId).toBe(TRACE);
  expect(placeOf(from(TRACE), 1, newId).traceId).toBe(TRACE);
  for (const id of ["mine", "0".repeat(32), "x".repeat(32), `${TRACE}0`, "-".repeat(34)]) {
    const { traceId } = placeOf(from(id), 1, newId);
    expect(traceId).toMatch(/^[0-9a-f]{32}$/);
    expect(traceId).not.toBe(id);
  }
});

test("the ratio takes its share, and the same traces each time", () => {
  const ids = Array.from({ length: 4_000 }, () => crypto.randomUUID());
  const taken = (ratio: number) => ids.filter((id) => isSampled(placeOf(from(id), ratio, newId)));
  expect(taken(0)).toHaveLength(0);
  expect(taken(1)).toHaveLength(4_000);
  expect(Math.abs(taken(0.25).length - 1_000)).toBeLessThan(250);
  expect(taken(0.25)).toEqual(taken(0.25));
  // A larger share has all that a smaller one has.
  const half = new Set(taken(0.5));
  for (const id of taken(0.25)) expect(half).toContain(id);
});
