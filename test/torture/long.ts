// The long forms: sh bin/bun test/torture/long.ts [--requests 1000000] [--answers 100000] [--tls-requests 50000] [--seed 1].
// Ends with 0 if nothing was wrong.

import { parseArgs } from "node:util";
import { createAuthority } from "../support/certificates.ts";
import { waitFor } from "../support/wait-for.ts";
import { compare, DIFFERENCES } from "./differential.ts";
import { type FaultOptions, runFaults } from "./faults.ts";
import { openSockets } from "./open-sockets.ts";
import { newClient, type TestClient } from "./subject.ts";

const { values } = parseArgs({
  options: {
    requests: { type: "string", default: "1000000" },
    answers: { type: "string", default: "100000" },
    "tls-requests": { type: "string", default: "50000" },
    seed: { type: "string", default: "1" },
  },
});
const seed = Number(values.seed);
/** A run of faults is done in parts, each with a seed and a client of its own, so that what one leaves open shows. */
const PART = 100_000;

let isRight = true;

async function faults(
  name: string,
  total: number,
  toClient: () => TestClient,
  more: Partial<FaultOptions>,
): Promise<void> {
  for (let done = 0; done < total; done += PART) {
    const startedMs = performance.now();
    const before = openSockets();
    const report = await runFaults(toClient(), {
      seed: seed + done / PART,
      requests: Math.min(PART, total - done),
      ...more,
    });
    await waitFor("as many sockets as before", () => openSockets() === before).catch(() => {
      report.wrong.push(`${openSockets()} open sockets, ${before} before`);
    });
    const megabytes = Math.round(process.memoryUsage.rss() / 1024 / 1024);
    console.log(name, { ...report, seconds: Math.round((performance.now() - startedMs) / 1000), megabytes });
    isRight &&= report.wrong.length === 0;
  }
}

if (Number(values.answers) > 0) {
  const client = newClient({ maxIdle: 0 });
  const report = await compare(client.transport, seed, Number(values.answers));
  client.close();
  console.log("random answers, beside fetch:", { ...report, unexplained: report.unexplained.length });
  for (const each of report.unexplained.slice(0, 20)) console.log(each);
  const unseen = DIFFERENCES.filter(({ name }) => report.differences[name] === undefined).map(({ name }) => name);
  if (unseen.length > 0) console.log("differences that were not seen:", unseen);
  isRight &&= report.unexplained.length === 0 && report.violations.length === 0;
}
await faults("requests with faults:", Number(values.requests), () => newClient(), {});
const authority = createAuthority();
const { chain, key } = authority.issue(["127.0.0.1"]);
const tls = { cert: chain, key };
await faults(
  "requests with faults over TLS:",
  Number(values["tls-requests"]),
  () => newClient({ tls: { ca: authority.root } }),
  { tls },
);
process.exit(isRight ? 0 : 1);
