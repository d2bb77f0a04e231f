// Concurrent calls share one run; later ones start their own.

import { expect, test } from "bun:test";
import { singleflight } from "./singleflight.ts";

test("calls during a run join it, and a call after it starts another", async () => {
  const flight = singleflight<number>();
  const gates = [Promise.withResolvers<number>(), Promise.withResolvers<number>()];
  let runs = 0;
  const work = () => (gates[runs++] as PromiseWithResolvers<number>).promise;
  const joined = [flight.run(work), flight.run(work), flight.run(work)];
  expect(runs).toBe(1);
  gates[0]?.resolve(1);
  expect(await Promise.all(joined)).toEqual([1, 1, 1]);
  const later = flight.run(work);
  expect(runs).toBe(2);
  gates[1]?.resolve(2);
  expect(await later).toBe(2);
});

test("a failure is shared too, and is not kept", async () => {
  const flight = singleflight<string>();
  const gate = Promise.withResolvers<string>();
  const joined = [flight.run(() => gate.promise), flight.run(() => gate.promise)];
  gate.reject(new Error("broken"));
  const results = await Promise.allSettled(joined);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await flight.run(async () => "well")).toBe("well");
});
