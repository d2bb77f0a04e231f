// One worker makes a call, the others are told which.

import { expect, test } from "bun:test";
import { createFlights } from "./flights.ts";

test("the first makes the call, until it is over, too old, or gone", () => {
  let nowMs = 0;
  const flights = createFlights(() => nowMs);
  const ask = (socket: string, isNotAt?: string) => flights.lead("digest", socket, 100, isNotAt);
  expect(ask("a")).toBe("a");
  expect(ask("b")).toBe("a");
  expect(flights.lead("another", "b", 100, undefined)).toBe("b");
  // It was not there any more: whoever has seen that makes the call.
  expect(ask("b", "a")).toBe("b");
  expect(ask("a")).toBe("b");
  flights.landed("digest", "a"); // not a's any more
  expect(ask("a")).toBe("b");
  flights.landed("digest", "b");
  expect(ask("a")).toBe("a");
  nowMs = 100;
  expect(ask("b")).toBe("b");
  flights.gone("b");
  expect(ask("a")).toBe("a");
});
