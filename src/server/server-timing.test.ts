import { expect, test } from "bun:test";
import { recordOf } from "../../test/support/request-records.ts";
import { serverTiming } from "./server-timing.ts";

const record = recordOf;

test.each([
  ["a plain answer", record({ backendMs: 350.12 }), undefined, "gateway;dur=9.9, backend;dur=350.1"],
  [
    "the first event of a stream",
    record({ stream: true }),
    340,
    "gateway;dur=20, backend;dur=340, first-token;dur=360",
  ],
  [
    "a stream behind a failure",
    record({ stream: true, backendMs: 100 }),
    240,
    "gateway;dur=20, backend;dur=340, first-token;dur=360",
  ],
  ["no backend", record({}), undefined, "gateway;dur=360"],
  ["another request's call", record({ isShared: true }), undefined, "shared;dur=360"],
])("%s", (_, of, runningMs, told) => {
  expect(serverTiming(of, 360, runningMs)).toBe(told);
});
