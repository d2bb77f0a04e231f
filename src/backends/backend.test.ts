// Which endpoints a backend is asked at.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { backendSchema } from "../config/sections/backends.ts";
import { beginRunning, endRunning, newCounters, type Running, toBackend } from "./backend.ts";
import { servedBy } from "./operations.ts";

type Formats = NonNullable<ReturnType<typeof backendSchema.parse>["protocols"]>;

describe("the legacy completions endpoint", () => {
  const cases: [protocols: Formats | undefined, served: string][] = [
    [undefined, "completions"],
    [["chat"], "completions"],
    [["responses"], "responses"],
    [["messages"], "messages"],
  ];
  test.each(cases)("belongs to servers of the chat format: %j", (protocols, served) => {
    const backend = toBackend(backendSchema.parse({ name: "b", type: "openai", ...(protocols && { protocols }) }));
    expect(servedBy(backend.paths, "completions")).toBe(served as never);
  });
});

describe("requests in flight", () => {
  test("are those that began and did not end, in whatever order they end", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(9), { maxLength: 100 }), (steps) => {
        const counters = newCounters();
        const model: Running[] = [];
        let idle = 0;
        counters.onIdle = () => idle++;
        for (const step of steps) {
          const [ended] = model.splice(step, 1);
          const idleBefore = idle;
          if (ended === undefined) {
            const entry: Running = { place: 0, cut() {} };
            beginRunning(counters, entry);
            model.push(entry);
          } else {
            endRunning(counters, ended);
            expect(idle - idleBefore).toBe(model.length === 0 ? 1 : 0);
          }
          expect(counters.inFlight).toBe(model.length);
          expect(new Set(counters.running)).toEqual(new Set(model));
          expect(counters.running.length).toBe(model.length);
        }
      }),
    );
  });
});
