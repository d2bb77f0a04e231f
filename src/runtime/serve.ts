// Server mode: opens the addresses, puts a gateway behind them, says what was found, and runs until a signal.

import { isOnLoopback } from "../access/hosts.ts";
import { displayUrl, toBackend } from "../backends/backend.ts";
import { renderBanner } from "../cli/banner.ts";
import type { FoundBackend } from "../discovery/discover.ts";
import { systemClock } from "../lib/clock.ts";
import { isTerminal } from "../lib/terminal.ts";
import { VERSION } from "../names.ts";
import { listen, type Server } from "../server/listener.ts";
import { type Surface, serveTargets } from "../server/request-target.ts";
import { createGateway, type Gateway, type GatewayParts } from "./gateway.ts";
import { drain, untilSignalled } from "./shutdown.ts";

interface ServeParts extends Omit<GatewayParts, "clock"> {
  /** Backends that nobody has configured. */
  found: readonly FoundBackend[] | undefined;
}

/** How long the start waits for the first health checks before it says that it is up. */
const FIRST_CHECKS_MS = 1_000;

const STANDARD_OUTPUT = 1;

const OPEN_TO_ALL =
  "other machines can connect and no API key is required: whoever reaches the port can use all backends and spend their " +
  "keys; set api_keys.mode to blocking, or bind to 127.0.0.1";

/** Returns the exit code and, when an address could not be opened, why. */
export async function serve({ found, ...options }: ServeParts): Promise<{ exitCode: number; message?: string }> {
  const { store, log } = options;
  const { settings, baseDir } = store.current;
  // The addresses come first: a port that is taken ends the start before any backend is asked for anything.
  const servers: Server[] = [];
  const addresses: string[] = [];
  const socketMode = Number.parseInt(settings.server.unix_socket_mode, 8);
  const bound = [settings.server.bind_address].flat();
  for (const bindAddress of bound) {
    const result = await listen(bindAddress, baseDir, { fetch: async () => notYet() }, socketMode);
    if (!result.ok) {
      await Promise.all(servers.map((server) => server.stop(true)));
      return { exitCode: 1, message: result.message };
    }
    servers.push(result.server);
    addresses.push(result.address);
  }
  if (settings.api_keys.mode === "permissive" && !isOnLoopback(bound)) log.warn({ bind_address: bound }, OPEN_TO_ALL);

  const gateway = createGateway({ ...options, clock: systemClock });
  // Whoever asks from here on waits until everything is there.
  const ready = gateway.start();
  const waiting = ({ paths, handle }: Surface): Surface => ({
    paths,
    handle: (request, server, target) => ready.then(() => handle(request, server, target)),
  });
  const [api, admin] = [waiting(gateway.api), waiting(gateway.admin)];
  const served = serveTargets(api, admin);
  for (const server of servers) server.reload(served);
  await ready;
  api.handle = gateway.api.handle;
  admin.handle = gateway.admin.handle;

  const signalled = untilSignalled();
  await Promise.race([gateway.fleet.firstChecks, Bun.sleep(FIRST_CHECKS_MS)]);
  await writeOut(await bannerOf(addresses, found, options, gateway));

  await signalled;
  const { shutdown_timeout } = store.current.settings.server;
  await drain(servers, shutdown_timeout, log);
  await gateway.stop();
  store.close();
  log.info("stopped");
  return { exitCode: 0 };
}

async function bannerOf(
  addresses: readonly string[],
  found: ServeParts["found"],
  { store, env }: Omit<GatewayParts, "clock">,
  { fleet }: Gateway,
): Promise<string> {
  const { settings, path } = store.current;
  const configured = settings.backends.map(toBackend).map((backend) => {
    return { name: backend.name, kind: backend.kind.name, url: displayUrl(backend) };
  });
  const isChatModel = (id: string) => !/embed|rerank|whisper|tts|dall-e|image/i.test(id);
  const model = (await fleet.models.list()).find(({ id }) => isChatModel(id))?.id;
  return renderBanner({
    version: VERSION,
    addresses,
    backends: found ?? configured,
    ...(path !== undefined && { configPath: path }),
    ...(model !== undefined && { model }),
    apiKeyRequired: settings.api_keys.mode === "blocking",
    colour: isTerminal(STANDARD_OUTPUT) && !env.NO_COLOR,
  });
}

/** process.stdout would bring Node's streams with it. Whoever has closed the output wants no banner. */
async function writeOut(text: string): Promise<void> {
  await Bun.write(Bun.stdout, text).catch(() => {});
}

/** For the moment between the first address and the last one. */
function notYet(): Response {
  return new Response("The gateway is starting.\n", { status: 503, headers: { "Retry-After": "1" } });
}
