// A gateway in the process of the test, on a socket: for what cannot be seen from outside.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../src/config/compile/load.ts";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { openConfigStore } from "../../src/config/store/open-store.ts";
import type { ConfigStore } from "../../src/config/store/store.ts";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { silentLogger } from "../../src/logging/logger.ts";
import { createGateway, type Gateway } from "../../src/runtime/gateway.ts";
import { serveTargets } from "../../src/server/request-target.ts";
import { upstreamClient } from "./start-gateway.ts";

export interface InProcessGateway {
  gateway: Gateway;
  store: ConfigStore;
  url: string;
  fetch(path: string, init?: RequestInit): Promise<Response>;
  stop(): Promise<void>;
}

/** Ready when every backend has been looked at. */
export async function startInProcess(document: ConfigDocument = {}, clock: Clock = systemClock) {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-in-process-"));
  const path = join(folder, "gateway.yaml");
  const server = { data_dir: folder, ...upstreamClient(), ...document.server };
  const quiet = { server, logging: { level: "error", ...document.logging } };
  writeFileSync(path, JSON.stringify({ ...document, ...quiet }));
  const common = { env: {}, home: folder, checks: [], readers: [], clock };
  const loaded = await loadConfig({ ...common, path, cwd: folder });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const { snapshot, fileHash } = loaded;
  const log = silentLogger();
  const opened = await openConfigStore({ ...common, snapshot, fileHash, log });
  if (!opened.ok) throw new Error(JSON.stringify(opened.problems));
  const { store } = opened;
  const gateway = createGateway({ store, fileHash, env: {}, clock, log });
  await gateway.start();
  const served = serveTargets(gateway.api, gateway.admin);
  const listener = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, ...served });
  await gateway.fleet.firstChecks;
  const url = `http://127.0.0.1:${listener.port}`;
  return {
    gateway,
    store,
    url,
    fetch: (path: string, init?: RequestInit) => fetch(url + path, init),
    async stop() {
      await listener.stop(true);
      await gateway.stop();
      store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
