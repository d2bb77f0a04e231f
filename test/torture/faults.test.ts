// A few thousand requests to a server that fails at random; `long.ts` does the same with a million.

import { expect, test } from "bun:test";
import { createAuthority } from "../support/certificates.ts";
import { waitFor } from "../support/wait-for.ts";
import { type FaultReport, runFaults } from "./faults.ts";
import { openSockets } from "./open-sockets.ts";
import { newClient } from "./subject.ts";

async function expectSockets(before: number | undefined): Promise<void> {
  // Those of an earlier test may have been closing still when they were counted.
  await waitFor("no more sockets than before", () => (openSockets() ?? 0) <= (before ?? 0), {
    explain: () => `${openSockets()} sockets, ${before} before`,
  });
}

function expectRight({ wrong, answered, failed, left, requests, replaced }: FaultReport): void {
  expect(wrong).toEqual([]);
  expect(answered + failed + left).toBe(requests);
  for (const count of [answered, failed, left, replaced]) expect(count).toBeGreaterThan(requests / 100);
}

test("whatever goes wrong, no answer is another's, nothing is asked too often, and no socket stays", async () => {
  const before = openSockets();
  const client = newClient();
  const report = await runFaults(client, { seed: 1, requests: 5_000 });
  console.log(report);
  expectRight(report);
  await expectSockets(before);
}, 60_000);

test("the same over TLS", async () => {
  const authority = createAuthority();
  const { chain, key } = authority.issue(["127.0.0.1"]);
  const before = openSockets();
  const client = newClient({ tls: { ca: authority.root } });
  const report = await runFaults(client, { seed: 2, requests: 500, tls: { cert: chain, key } });
  expectRight(report);
  await expectSockets(before);
}, 60_000);
