// Starts the gateway that most tests need: one in the process of the test, which starts in some milliseconds.

import type { Gateway } from "./gateway.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import { startGatewayProcess } from "./gateway-process.ts";
import { startInProcess } from "./in-process.ts";

/**
 * With GATEWAY_WORKERS it is a process with so many workers. Tests of signals, restarts, standard streams, the command line and
 * workers start a process by startGatewayProcess().
 */
export function startGateway(parts: GatewayParts = {}): Promise<Gateway> {
  return process.env.GATEWAY_WORKERS === undefined ? startInProcess(parts) : startGatewayProcess(parts);
}
