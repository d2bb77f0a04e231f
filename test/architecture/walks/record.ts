// Records the walks: for each request, the rooms in the order in which a function of each was first called. They are printed, or
// with --write put into ARCHITECTURE.md. A process of its own, because the source must not be loaded before it is instrumented.

import { waitFor } from "../../support/wait-for.ts";
import { followTimers } from "./background.ts";
import { instrumentSource } from "./instrument.ts";
import { describeWalks } from "./page.ts";
import type { WalkRequest } from "./requests.ts";

/** Every other room uses them at any time; where they are called first says nothing. */
const TOOLS: ReadonlySet<string> = new Set(["lib", "names.ts"]);

/** Entered when a request is over, and not before. What follows it until the last log line happens in the same turn. */
const END_OF_REQUEST = "stats/outcome.ts";

/** The first requests of a kind load modules, open connections and make what is made once for each backend. */
const WARM_UPS = 4;

const files = new Set<string>();
const isOfTimer = followTimers();
await instrumentSource((file) => {
  if (!isOfTimer()) files.add(file);
});
const { startWalks } = await import("./requests.ts");
const { requests, stop } = await startWalks();
const all = Object.entries(requests);
for (const [, request] of all) for (let count = 0; count < WARM_UPS; count++) await record(request);
const walks: Record<string, readonly string[]> = {};
for (const [name, request] of all) walks[name] = await record(request);
await stop();
if (process.argv.includes("--write")) await describeWalks(walks);
else console.log(JSON.stringify(walks));

/** The rooms that one request enters. */
async function record({ status, send }: WalkRequest): Promise<string[]> {
  files.clear();
  const response = await send();
  const body = await response.text();
  if (response.status !== status) throw new Error(`${status} was expected: ${response.status} ${body}`);
  await waitFor("the end of the request", () => files.has(END_OF_REQUEST));
  const rooms = [...files].map((file) => file.split("/")[0] as string);
  return [...new Set(rooms)].filter((room) => !TOOLS.has(room));
}
