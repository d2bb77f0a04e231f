// A gateway in the process of the test, on sockets: what `serve` does, without workers, signals and standard streams.

import { rmSync } from "node:fs";
import { loadConfig } from "../../src/config/compile/load.ts";
import { openConfigStore } from "../../src/config/store/open-store.ts";
import type { ConfigStore } from "../../src/config/store/store.ts";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { applyLogSettings, type Logger, loggerTo } from "../../src/logging/logger.ts";
import { createGateway } from "../../src/runtime/gateway.ts";
import { warnOfOpenDoor } from "../../src/runtime/greeting.ts";
import { surroundings } from "../../src/runtime/open-configuration.ts";
import { drain } from "../../src/runtime/shutdown.ts";
import { listen, NOT_YET, type Server } from "../../src/server/listener.ts";
import { serveTargets } from "../../src/server/request-target.ts";
import { Gateway, type RestartParts, waitForFirstChecks } from "./gateway.ts";
import { configPathOf, environmentOf, type GatewayParts, makeFolder, withFreePort } from "./gateway-parts.ts";
import { Printed } from "./printed.ts";

/** What ends with stop(), and is made again by restart(). */
interface Running {
  url: string;
  printed: Printed;
  log: Logger;
  inside: ReturnType<typeof createGateway>;
  store: ConfigStore;
  servers: readonly Server[];
}

export class InProcessGateway extends Gateway {
  readonly folder: string;
  readonly #parts: GatewayParts;
  readonly #clock: Clock;
  #running: Running;
  #isOver = false;

  constructor(parts: GatewayParts, folder: string, clock: Clock, running: Running) {
    super(configPathOf(folder, parts));
    this.#parts = parts;
    this.folder = folder;
    this.#clock = clock;
    this.#running = running;
  }

  get url(): string {
    return this.#running.url;
  }

  get printed(): Printed {
    return this.#running.printed;
  }

  /** What no client can see. */
  get inside(): Running["inside"] {
    return this.#running.inside;
  }

  get store(): ConfigStore {
    return this.#running.store;
  }

  async stop(): Promise<void> {
    const { inside, store, servers, log } = this.#running;
    inside.closing();
    await drain(servers, store.current.settings.server.shutdown_timeout, log);
    await this.#end();
  }

  async restart(options: RestartParts = {}): Promise<void> {
    if (!this.#isOver) await this.stop();
    this.printed.check();
    this.#running = await run({ ...this.#parts, ...options }, this.folder, this.#clock);
    this.#isOver = false;
  }

  async close(): Promise<void> {
    this.inside.closing();
    await Promise.all(this.#running.servers.map((server) => server.stop(true)));
    if (!this.#isOver) await this.#end(0);
    rmSync(this.folder, { recursive: true, force: true });
    this.printed.check();
  }

  async #end(withinMs?: number): Promise<void> {
    this.#isOver = true;
    await this.inside.stop(withinMs);
    this.store.close();
  }
}

/** Ready when every backend has been looked at, unless the test will not wait for it. */
export async function startInProcess(
  options: GatewayParts = {},
  clock: Clock = systemClock,
): Promise<InProcessGateway> {
  const parts = withFreePort(options);
  const folder = makeFolder(parts);
  try {
    return new InProcessGateway(parts, folder, clock, await run(parts, folder, clock));
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

async function run(parts: GatewayParts, folder: string, clock: Clock): Promise<Running> {
  const env = environmentOf(folder, parts);
  const common = { ...surroundings(env, undefined), clock };
  const loaded = await loadConfig({ ...common, path: configPathOf(folder, parts), cwd: folder });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const { snapshot, fileHash } = loaded;
  if (snapshot.attachments.problem !== undefined) throw new Error(snapshot.attachments.problem);
  const printed = new Printed();
  const log = loggerTo(asJson(printed));
  applyLogSettings(log, snapshot.settings.logging);
  const opened = await openConfigStore({ ...common, snapshot, fileHash, log });
  if (!opened.ok) throw new Error(JSON.stringify(opened.problems));
  const { store } = opened;
  const { settings } = store.current;
  applyLogSettings(log, settings.logging);
  if (settings.server.workers !== 1) throw new Error("server.workers needs a process: startGatewayProcess()");
  const socketMode = Number.parseInt(settings.server.unix_socket_mode, 8);
  const servers: Server[] = [];
  const addresses: string[] = [];
  for (const address of [settings.server.bind_address].flat()) {
    const result = await listen(address, folder, NOT_YET, socketMode);
    if (!result.ok) throw new Error(result.message);
    servers.push(result.server);
    addresses.push(result.address);
  }
  warnOfOpenDoor(settings, log);
  const inside = createGateway({ store, fileHash, env, clock, log });
  await inside.start();
  const served = serveTargets(inside.api, inside.admin);
  for (const server of servers) server.reload(served);
  const url = `http://${addresses.find((address) => !address.startsWith("unix:"))}`;
  if (parts.awaitHealth ?? true) {
    await waitForFirstChecks(url);
    await inside.fleet.firstChecks; // model lists too: a request would wait for them, and say so
  }
  return { url, printed, log, inside, store, servers };
}

/** Whatever the format is that the settings name: what is made of a line is seen from outside only. */
function asJson(printed: Printed): Parameters<typeof loggerTo>[0] {
  return {
    write(line) {
      printed.stderr += line;
    },
    get format() {
      return undefined;
    },
    set format(_ignored) {},
  };
}
