// A new part that follows the configuration is a file and a line of the list: a copy of the program that has one more of both
// makes it at the start, again when its own slice has changed, and ends it.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import { type ChangedCopy, changedCopy } from "../support/changed-copy.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";

setDefaultTimeout(60_000);

const FILE = { file: "test/architecture/throw-away-part/part.ts", as: "src/stats/throw-away-part.ts" };
const LIST = "src/runtime/compose.ts";
const LINE = [
  {
    file: LIST,
    before: 'import { buildDataPlane } from "./data-plane.ts";',
    insert: 'import { createThrowAwayPart } from "../stats/throw-away-part.ts";',
  },
  {
    file: LIST,
    before: "    { follow: ({ settings }) => applyLogSettings(log, settings.logging) },",
    insert: "    createThrowAwayPart(snapshot, log),",
  },
];

let copy: ChangedCopy;
beforeAll(() => {
  copy = changedCopy(LINE, FILE);
});
afterAll(() => copy?.remove());

test("a file and a line are all that the compiler asks for", async () => {
  expect(await copy.typeErrors()).toEqual([]);
});

test.each([1, 2])("with server.workers: %p it is made, made again with another slice, and ended", async (workers) => {
  const gateway = await startGatewayProcess({
    command: [copy.command],
    config: { server: { workers }, backends: [{ name: "a", type: "demo" }], logging: { format: "json" } },
  });
  const said = () =>
    gateway.printed.logEntries
      .filter(({ msg }) => String(msg).startsWith("throw-away: "))
      .map(({ msg, attempts, before }) => [msg, attempts, before]);
  const admin = new AdminClient(gateway);
  await admin.ok("PATCH", "/admin/config/circuit_breaker", { failure_threshold: 7 });
  await admin.ok("PATCH", "/admin/config/retry", { max_attempts: 9 });
  gateway.process.kill("SIGTERM");
  await gateway.process.finished();
  await gateway.close();
  const processes = workers === 1 ? 1 : workers + 1;
  const each = [
    ["throw-away: made", 3, undefined],
    ["throw-away: made", 9, 3],
    ["throw-away: ended", 3, undefined],
    ["throw-away: ended", 9, undefined],
  ];
  const expected = each.flatMap((entry) => Array.from({ length: processes }, () => entry));
  expect(said().map(String).sort()).toEqual(expected.map(String).sort());
});
