// Entry point: parses the arguments, chooses what to do, and sets the exit code.

import { displayUrl, toBackend } from "./backends/backend.ts";
import { backendProblems } from "./backends/checks.ts";
import { type Command, helpText, parseArguments } from "./cli/arguments.ts";
import { renderBanner } from "./cli/banner.ts";
import { defaultConfigText } from "./cli/generate-config.ts";
import { defaultHealthCheckUrl, runHealthCheck } from "./cli/health-check.ts";
import { renderCheck, renderCheckAsJson, renderProblems } from "./cli/problems.ts";
import { loadConfig } from "./config/compile/load.ts";
import { effectWarnings } from "./config/compile/without-effect.ts";
import type { Settings } from "./config/sections/registry.ts";
import { openConfigStore } from "./config/store/open-store.ts";
import type { SettingsCheck } from "./config/values/problems.ts";
import { withDiscoveredBackends } from "./fleet/zero-configuration.ts";
import { systemClock } from "./lib/clock.ts";
import { keepLoopbackFromProxies } from "./lib/proxy-environment.ts";
import { applyLogSettings, createLogger } from "./logging/logger.ts";
import { loadModelMetadata } from "./models/metadata-file.ts";
import { SERVICE_NAME, VERSION } from "./names.ts";
import { fallbackProblems } from "./pipeline/fallback-checks.ts";
import { namedFileReaders } from "./runtime/named-files.ts";
import { raiseFetchLimit } from "./runtime/raise-fetch-limit.ts";
import { serve } from "./runtime/serve.ts";

type ServeCommand = Extract<Command, { command: "serve" }>;
type CheckConfigCommand = Extract<Command, { command: "check-config" }>;

async function main(): Promise<number> {
  const { env } = process;
  const parsed = parseArguments(process.argv.slice(2), env.HOME);
  if ("error" in parsed) return fail(`${SERVICE_NAME}: ${parsed.error}`);
  switch (parsed.command) {
    case "help":
      process.stdout.write(helpText());
      return 0;
    case "version":
      process.stdout.write(`${SERVICE_NAME} ${VERSION}\n`);
      return 0;
    case "generate-config":
      process.stdout.write(defaultConfigText());
      return 0;
    case "health-check":
      return await checkHealth(parsed.url, parsed.config);
    case "check-config":
      return await checkConfig(parsed);
    case "serve":
      return await startServer(parsed);
  }
}

async function startServer({ config, modelMetadata, ignoreSaved }: ServeCommand): Promise<number> {
  raiseFetchLimit();
  const { env } = process;
  keepLoopbackFromProxies(env);
  const surroundings = { env, home: env.HOME, checks: CHECKS, readers: namedFileReaders(modelMetadata) };
  const loaded = await loadConfig({ ...surroundings, path: config, cwd: process.cwd() });
  if (!loaded.ok) return fail(renderProblems(loaded.problems, loaded.path, process.cwd()).trimEnd());

  const discovered =
    loaded.found === undefined
      ? await withDiscoveredBackends(loaded.snapshot, env)
      : { ok: true as const, snapshot: loaded.snapshot, found: undefined };
  if (!discovered.ok) return fail(`${SERVICE_NAME}: ${discovered.message}`);
  const { snapshot, found } = discovered;

  // Told before anything is kept of the file.
  const { problem } = snapshot.attachments;
  if (problem !== undefined) return fail(`${SERVICE_NAME}: ${problem}`);
  const log = createLogger(snapshot.settings.logging);
  const { fileHash } = loaded;
  const opened = await openConfigStore({ ...surroundings, snapshot, fileHash, clock: systemClock, log, ignoreSaved });
  if (!opened.ok) {
    const told = renderProblems(opened.problems, undefined, process.cwd()).trimEnd();
    return fail(
      `${told}\nThis is version ${opened.version}, made through the admin API; --ignore-saved starts without it.`,
    );
  }
  const { store } = opened;
  applyLogSettings(log, store.current.settings.logging);

  const { exitCode, message } = await serve({
    store,
    fileHash,
    log,
    env,
    async started(addresses, { fleet }) {
      const { settings } = store.current;
      const configured = settings.backends.map(toBackend).map((backend) => ({
        name: backend.name,
        kind: backend.kind.name,
        url: displayUrl(backend),
      }));
      const isChatModel = (id: string) => !/embed|rerank|whisper|tts|dall-e|image/i.test(id);
      const model = (await fleet.models.list()).find(({ id }) => isChatModel(id))?.id;
      const banner = renderBanner({
        version: VERSION,
        addresses,
        backends: opened.resumed ? configured : (found ?? configured),
        ...(loaded.found !== undefined && { configPath: loaded.found }),
        ...(model !== undefined && { model }),
        apiKeyRequired: settings.api_keys.mode === "blocking",
        colour: process.stdout.isTTY === true && !env.NO_COLOR,
      });
      process.stdout.write(banner);
    },
  });
  return message === undefined ? exitCode : fail(`${SERVICE_NAME}: ${message}`);
}

/** Rules of the layers above the configuration. */
const CHECKS: readonly SettingsCheck<Settings>[] = [(settings) => backendProblems(settings.backends), fallbackProblems];

async function checkHealth(url: string | undefined, configPath: string | undefined): Promise<number> {
  const target = url ?? (await configuredHealthUrl(configPath));
  if (target === undefined) return 1;
  keepLoopbackFromProxies(process.env);
  const { healthy, message } = await runHealthCheck(target);
  if (!healthy) return fail(`${SERVICE_NAME}: ${message}`);
  process.stdout.write(`${message}\n`);
  return 0;
}

/**
 * Undefined, and told, when the address is not known: that another one answers says nothing. What else is wrong with the
 * configuration is told too, but a gateway may run at its address with an earlier form of it.
 */
async function configuredHealthUrl(configPath: string | undefined): Promise<string | undefined> {
  const loaded = await loadConfig({ path: configPath, env: process.env, cwd: process.cwd() });
  if (!loaded.ok) fail(renderProblems(loaded.problems, loaded.path, process.cwd()).trimEnd());
  const { server, baseDir } = loaded.ok
    ? { server: loaded.snapshot.settings.server, baseDir: loaded.snapshot.baseDir }
    : loaded;
  const url = server && defaultHealthCheckUrl(server, baseDir);
  if (url === undefined) {
    const reason = server === undefined ? "the configuration does not say where" : "the port is chosen at the start";
    fail(`${SERVICE_NAME}: the address of the gateway is not known, ${reason}; name it with --health-check-url`);
  }
  return url;
}

/** Everything that would keep the gateway from starting, and what in it has no effect. */
async function checkConfig({ config, modelMetadata, asJson }: CheckConfigCommand): Promise<number> {
  const cwd = process.cwd();
  const readers = namedFileReaders(modelMetadata);
  const loaded = await loadConfig({ path: config, env: process.env, cwd, checks: CHECKS, readers });
  const metadata = modelMetadata === undefined ? undefined : await loadModelMetadata(modelMetadata);
  const ofMetadata = metadata === undefined || metadata.ok ? [] : metadata.problems;
  const problems = [
    ...(loaded.ok ? [] : loaded.problems),
    ...ofMetadata.map((message) => ({ path: ["--model-metadata"], message })),
  ];
  const result = {
    path: loaded.ok ? loaded.found : loaded.path,
    problems,
    warnings: loaded.ok ? effectWarnings(loaded.snapshot.settings) : [],
  };
  process.stdout.write(asJson ? renderCheckAsJson(result) : renderCheck(result, cwd));
  return problems.length === 0 ? 0 : 1;
}

function fail(message: string): number {
  process.stderr.write(`${message}\n`);
  return 1;
}

// Streams and timers may still be winding down; what the process was asked to do is done.
process.exit(await main());
