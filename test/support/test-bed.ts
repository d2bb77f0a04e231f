// Backends and gateways of one test file: made when asked for, and all ended when the file is done, failed or not.

import { afterAll, setDefaultTimeout } from "bun:test";
import { FakeBackend, type FakeBackendOptions } from "./fake-backend.ts";
import type { Gateway } from "./gateway.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import { type ProcessGateway, type ProcessParts, startGatewayProcess } from "./gateway-process.ts";
import { startGateway } from "./start-gateway.ts";

export interface TestBed {
  backend(options?: FakeBackendOptions): FakeBackend;
  gateway(options?: GatewayParts): Promise<Gateway>;
  /** For signals, restarts, standard streams, the command line and workers. */
  process(options?: ProcessParts): Promise<ProcessGateway>;
}

/**
 * Longer than every deadline inside a test: the runner kills the processes of a test that times out, the gateway of the
 * whole file among them, so that one late test would fail all that follow.
 */
const TEST_TIMEOUT_MS = 60_000;

export function createTestBed(): TestBed {
  setDefaultTimeout(TEST_TIMEOUT_MS);
  const backends: FakeBackend[] = [];
  const gateways: Gateway[] = [];
  afterAll(async () => {
    const outcomes = await Promise.allSettled(gateways.map((gateway) => gateway.close()));
    for (const backend of backends) backend.stop();
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  });
  async function ended<Started extends Gateway>(starting: Promise<Started>): Promise<Started> {
    const gateway = await starting;
    gateways.push(gateway);
    return gateway;
  }
  return {
    backend(options) {
      const backend = new FakeBackend(options);
      backends.push(backend);
      return backend;
    },
    gateway: (options) => ended(startGateway(options)),
    process: (options) => ended(startGatewayProcess(options)),
  };
}
