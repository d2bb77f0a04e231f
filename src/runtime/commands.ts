// What the command line asks for, agent mode left aside: the gateway, and what prints something and ends.

import { type Command, helpText } from "../cli/arguments.ts";
import { defaultConfigText } from "../cli/generate-config.ts";
import { defaultHealthCheckUrl, runHealthCheck } from "../cli/health-check.ts";
import { renderCheck, renderCheckAsJson, renderProblems } from "../cli/problems.ts";
import { type LoadResult, loadConfig } from "../config/compile/load.ts";
import { EFFECT_WARNINGS } from "../config/compile/without-effect.ts";
import { resolvePath } from "../config/values/paths.ts";
import { keepLoopbackFromProxies } from "../lib/proxy-environment.ts";
import { factsFile, readFactsFile } from "../models/facts-file.ts";
import { loadModelMetadata } from "../models/metadata-file.ts";
import { SERVICE_NAME } from "../names.ts";
import { configuredChainWarnings } from "../pipeline/fallback-checks.ts";
import { openConfiguration, surroundings } from "./open-configuration.ts";
import { ensureRuntimeOptions } from "./runtime-options.ts";
import { serve } from "./serve.ts";

type ServeCommand = Extract<Command, { command: "serve" }>;
type CheckConfigCommand = Extract<Command, { command: "check-config" }>;

/** Returns the exit code. */
export async function runCommand(parsed: Exclude<Command, { command: "agent" | "version" }>): Promise<number> {
  switch (parsed.command) {
    case "help":
      process.stdout.write(helpText());
      return 0;
    case "generate-config":
      process.stdout.write(defaultConfigText());
      return 0;
    case "health-check":
      return await checkHealth(parsed.url, parsed.config);
    case "check-config":
      return await checkConfig(parsed);
    case "backup":
      return await (await import("../cli/backup-commands.ts")).backUp(parsed, process.env);
    case "restore":
      return await (await import("../cli/backup-commands.ts")).restore(parsed, process.env);
    case "update-facts":
      return await (await import("../cli/update-facts.ts")).updateFacts(parsed, process.env);
    case "test-hook":
      return await (await import("./test-hook.ts")).testHook(parsed, process.env);
    case "replay":
      return await (await import("../cli/replay.ts")).replay(parsed, process.env);
    case "serve":
      return await startServer(parsed);
  }
}

async function startServer(command: ServeCommand): Promise<number> {
  ensureRuntimeOptions();
  keepLoopbackFromProxies(process.env);
  const opened = await openConfiguration(command, process.env);
  if (!opened.ok) return fail(opened.message);
  const { exitCode, message } = await serve({ ...opened, env: process.env });
  return message === undefined ? exitCode : fail(`${SERVICE_NAME}: ${message}`);
}

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
 * configuration is reported too, but a gateway may run at its address with an earlier form of it.
 */
async function configuredHealthUrl(configPath: string | undefined): Promise<string | undefined> {
  const loaded = await loadConfig({ path: configPath, env: process.env, cwd: process.cwd() });
  if (!loaded.ok) fail(renderProblems(loaded.problems, loaded.path, process.cwd()).trimEnd());
  const server = await loaded.prepared?.ask((settings) => settings.server);
  const { baseDir } = loaded.ok ? loaded.snapshot : loaded;
  const url = server && defaultHealthCheckUrl(server, baseDir);
  if (url === undefined) {
    const reason = server === undefined ? "the configuration does not say where" : "the port is chosen at the start";
    fail(`${SERVICE_NAME}: the address of the gateway is not known, ${reason}; name it with --health-check-url`);
  }
  return url;
}

/** Everything that would keep the gateway from starting, and what it would warn of. */
async function checkConfig({ config, modelMetadata, asJson }: CheckConfigCommand): Promise<number> {
  const cwd = process.cwd();
  const loaded = await loadConfig({ ...surroundings(process.env, modelMetadata), path: config, cwd });
  const metadata = modelMetadata === undefined ? undefined : await loadModelMetadata(modelMetadata);
  const ofMetadata = metadata === undefined || metadata.ok ? [] : metadata.problems;
  const problems = [
    ...(loaded.ok ? [] : loaded.problems),
    ...ofMetadata.map((message) => ({ path: ["--model-metadata"], message })),
    ...(await factsProblems(loaded)),
  ];
  const result = {
    path: loaded.ok ? loaded.found : loaded.path,
    problems,
    warnings: await checkWarnings(loaded),
  };
  process.stdout.write(asJson ? renderCheckAsJson(result) : renderCheck(result, cwd));
  return problems.length === 0 ? 0 : 1;
}

/** Of the file that --update-facts has written. */
async function factsProblems({ prepared, ...loaded }: LoadResult) {
  const dataDir = await prepared?.ask(({ server }) => server.data_dir);
  if (dataDir === undefined) return [];
  const { baseDir } = "snapshot" in loaded ? loaded.snapshot : loaded;
  const read = await readFactsFile(factsFile(resolvePath(dataDir, baseDir, process.env.HOME)));
  return "problems" in read ? read.problems.map((message) => ({ path: ["server", "data_dir"], message })) : [];
}

async function checkWarnings(loaded: LoadResult): Promise<string[]> {
  const { prepared } = loaded;
  if (prepared === undefined) return [];
  const warnings = configuredChainWarnings(prepared.input);
  for (const rule of EFFECT_WARNINGS) warnings.push(...((await prepared.ask(rule)) ?? []));
  return warnings;
}

function fail(message: string): number {
  process.stderr.write(`${message}\n`);
  return 1;
}
