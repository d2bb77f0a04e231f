// Backends and gateways of one test file: made when asked for, and all ended when the file is done, failed or not.

import { afterAll, setDefaultTimeout } from "bun:test";
import { FakeBackend, type FakeBackendOptions } from "./fake-backend.ts";
import { type Gateway, type GatewayParts, startGateway } from "./start-gateway.ts";

export interface TestBed {
  backend(options?: FakeBackendOptions): FakeBackend;
  gateway(options?: GatewayParts): Promise<Gateway>;
}

/**
 * Longer than every deadline inside a test: the runner kills the processes of a test that times out, the gateway of the
 * whole file among them, so that one late test would fail all that follow.
 */
const TEST_TIMEOUT_MS = 30_000;

export function createTestBed(): TestBed {
  setDefaultTimeout(TEST_TIMEOUT_MS);
  const backends: FakeBackend[] = [];
  const gateways: Gateway[] = [];
  afterAll(async () => {
    const outcomes = await Promise.allSettled(gateways.map((gateway) => gateway.close()));
    for (const backend of backends) backend.stop();
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  });
  return {
    backend(options) {
      const backend = new FakeBackend(options);
      backends.push(backend);
      return backend;
    },
    async gateway(options) {
      const gateway = await startGateway(options);
      gateways.push(gateway);
      return gateway;
    },
  };
}
