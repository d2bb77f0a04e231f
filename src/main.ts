// Entry point: parses the arguments, chooses what to do, and sets the exit code.

import { displayUrl, toBackend } from "./backends/backend.ts";
import { backendProblems } from "./backends/checks.ts";
import { helpText, parseArguments } from "./cli/arguments.ts";
import { renderBanner } from "./cli/banner.ts";
import { defaultConfigText } from "./cli/generate-config.ts";
import { defaultHealthCheckUrl, runHealthCheck } from "./cli/health-check.ts";
import { renderProblems } from "./cli/problems.ts";
import { loadConfig } from "./config/load.ts";
import { resolvePath } from "./config/paths.ts";
import { keepLoopbackFromProxies } from "./lib/proxy-environment.ts";
import { createModelMetadata } from "./models/metadata.ts";
import { loadModelMetadata, type MetadataFileResult } from "./models/metadata-file.ts";
import { SERVICE_NAME, VERSION } from "./names.ts";
import { fallbackProblems } from "./pipeline/fallback-checks.ts";
import { loadPromptFiles } from "./prompts/prompt-files.ts";
import { raiseFetchLimit } from "./runtime/raise-fetch-limit.ts";
import { serve } from "./runtime/serve.ts";
import { withDiscoveredBackends } from "./runtime/zero-configuration.ts";

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
    case "serve":
      return await startServer(parsed.config, parsed.modelMetadata);
  }
}

async function startServer(configPath: string | undefined, metadataPath: string | undefined): Promise<number> {
  raiseFetchLimit();
  const { env } = process;
  keepLoopbackFromProxies(env);
  const loaded = await loadConfig({
    path: configPath,
    env,
    cwd: process.cwd(),
    checks: [(settings) => backendProblems(settings.backends), fallbackProblems],
  });
  if (!loaded.ok) return fail(renderProblems(loaded.problems, loaded.path, process.cwd()).trimEnd());

  const { settings: written, baseDir } = loaded.snapshot;
  const metadataFile = await readMetadataFile(metadataPath, written.model_metadata.file, baseDir);
  if (!metadataFile.ok) return fail(`${SERVICE_NAME}: ${metadataFile.problems.join("\n  ")}`);
  const promptFiles = await loadPromptFiles(written.global_prompts, { baseDir, home: env.HOME });
  if (!promptFiles.ok) return fail(renderProblems(promptFiles.problems, loaded.found, process.cwd()).trimEnd());

  const started =
    loaded.found === undefined
      ? await withDiscoveredBackends(loaded.snapshot, env)
      : { ok: true as const, snapshot: loaded.snapshot, found: undefined };
  if (!started.ok) return fail(`${SERVICE_NAME}: ${started.message}`);
  const { snapshot, found } = started;

  const { exitCode, message } = await serve({
    snapshot,
    env,
    metadata: createModelMetadata({ backends: snapshot.settings.backends, external: metadataFile.entries }),
    promptFiles: promptFiles.files,
    async started({ addresses, control }) {
      const { settings } = snapshot;
      const configured = settings.backends.map(toBackend).map((backend) => ({
        name: backend.name,
        kind: backend.kind.name,
        url: displayUrl(backend),
      }));
      const isChatModel = (id: string) => !/embed|rerank|whisper|tts|dall-e|image/i.test(id);
      const model = (await control.listModels()).find(({ id }) => isChatModel(id))?.id;
      const banner = renderBanner({
        version: VERSION,
        addresses,
        backends: found ?? configured,
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

/** The option wins over the configuration; problems begin with the one that named the file. */
async function readMetadataFile(
  option: string | undefined,
  configured: string | undefined,
  baseDir: string,
): Promise<MetadataFileResult> {
  if (option === undefined && configured === undefined) return { ok: true, entries: [] };
  const read = await loadModelMetadata(option ?? resolvePath(configured ?? "", baseDir, process.env.HOME));
  if (read.ok) return read;
  return {
    ok: false,
    problems: [option === undefined ? "model_metadata.file:" : "--model-metadata:", ...read.problems],
  };
}

async function checkHealth(url: string | undefined, configPath: string | undefined): Promise<number> {
  const target = url ?? (await configuredHealthUrl(configPath));
  keepLoopbackFromProxies(process.env);
  const { healthy, message } = await runHealthCheck(target);
  if (!healthy) return fail(`${SERVICE_NAME}: ${message}`);
  process.stdout.write(`${message}\n`);
  return 0;
}

/** A configuration with problems is not this command's business: it then asks the default address. */
async function configuredHealthUrl(configPath: string | undefined): Promise<string> {
  const loaded = await loadConfig({ path: configPath, env: process.env, cwd: process.cwd() });
  const configured = loaded.ok
    ? defaultHealthCheckUrl(loaded.snapshot.settings.server, loaded.snapshot.baseDir)
    : undefined;
  return configured ?? "http://127.0.0.1:8080/health";
}

function fail(message: string): number {
  process.stderr.write(`${message}\n`);
  return 1;
}

// Streams and timers may still be winding down; what the process was asked to do is done.
process.exit(await main());
