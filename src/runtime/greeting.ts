// What is said at the start: a banner on the standard output, and a warning when other machines can connect without a key.

import { isOnLoopback } from "../access/hosts.ts";
import { displayUrl, toBackend } from "../backends/backend.ts";
import { displayAddress, renderBanner } from "../cli/banner.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { ConfigStore } from "../config/store/store.ts";
import type { Findings } from "../fleet/zero-configuration.ts";
import { inTime } from "../lib/abortable-delay.ts";
import { isTerminal } from "../lib/terminal.ts";
import type { Logger } from "../logging/logger.ts";
import { isChatModel } from "../models/chat-models.ts";
import { VERSION } from "../names.ts";
import type { Gateway, GatewayParts } from "./gateway.ts";

export interface ServeParts extends Omit<GatewayParts, "clock" | "workers" | "cacheSeed"> {
  /** Backends that were found without a configuration. */
  findings: Findings | undefined;
}

const STANDARD_OUTPUT = 1;
/** How long the start waits for the first health checks before it says that it is up. */
const FIRST_CHECKS_MS = 1_000;

const OPEN_TO_ALL =
  "other machines can connect and no API key is required: everyone who reaches the port can use all backends and spend their " +
  "keys; set api_keys.mode to blocking, or bind to 127.0.0.1";

export function warnOfOpenDoor({ api_keys, server }: Settings, log: Pick<Logger, "warn">): void {
  const bound = [server.bind_address].flat();
  if (api_keys.mode === "permissive" && !isOnLoopback(bound)) log.warn({ bind_address: bound }, OPEN_TO_ALL);
}

/** @param findings - backends that were found without a configuration */
export async function greet(
  addresses: readonly string[],
  findings: Findings | undefined,
  { store, env, log }: { store: ConfigStore; env: Record<string, string | undefined>; log: Pick<Logger, "info"> },
  { fleet }: Gateway,
): Promise<void> {
  await inTime(fleet.firstChecks, FIRST_CHECKS_MS);
  const { settings, path } = store.current;
  const configured = settings.backends.map(toBackend).map((backend) => {
    return { name: backend.name, kind: backend.kind.name, url: displayUrl(backend) };
  });
  if (settings.logging.format === "json") {
    const backends = (findings?.found ?? configured).map(({ name }) => name);
    const unrecognised = findings?.unrecognised.map(({ address, said }) => `${address} (${said})`);
    const told = { configuration: path, backends, ...(unrecognised?.length && { unrecognised }) };
    log.info({ addresses: addresses.map(displayAddress), ...told }, "Signalbox listens");
    return;
  }
  const model = (await fleet.models.list()).find(({ id }) => isChatModel(id, undefined))?.id;
  const banner = renderBanner({
    version: VERSION,
    addresses,
    backends: findings?.found ?? configured,
    unrecognised: findings?.unrecognised ?? [],
    ...(path !== undefined && { configPath: path }),
    ...(model !== undefined && { model }),
    apiKeyRequired: settings.api_keys.mode === "blocking",
    colour: isTerminal(STANDARD_OUTPUT) && !env.NO_COLOR,
  });
  // process.stdout would load Node's streams. A closed output is no error: the banner is not wanted then.
  await Bun.write(Bun.stdout, banner).catch(() => {});
}
