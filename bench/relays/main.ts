// The rungs of the ladder between the runtime alone and the gateway: `main.ts <rung> <upstream's port> <own port>`.
// Each does a little more than the one before it, so that every layer's cost can be read off as a difference.

import { answerItself } from "./answer-itself.ts";
import { relayByFetch } from "./bare-fetch.ts";
import { callByFetch } from "./fetch-calls.ts";
import { relayCalls } from "./plain-relay.ts";
import { relaySockets } from "./raw-sockets.ts";
import { callBySockets } from "./socket-calls.ts";
import { relayWithDuties } from "./with-duties.ts";

const RUNGS: Readonly<Record<string, (port: number, upstreamPort: number) => unknown>> = {
  raw: relaySockets,
  serve: answerItself,
  bare: relayByFetch,
  "fetch-duties": (port, upstreamPort) => relayWithDuties(port, callByFetch(upstreamPort)),
  client: (port, upstreamPort) => relayCalls(port, callBySockets(upstreamPort)),
  "client-duties": (port, upstreamPort) => relayWithDuties(port, callBySockets(upstreamPort)),
};

const [rung = "", upstreamPort, port] = process.argv.slice(2);
await RUNGS[rung]!(Number(port), Number(upstreamPort));
