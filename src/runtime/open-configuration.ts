// From the command line to the configuration that runs: the file, what is found without one, or the version that was kept.

import { backendProblems } from "../backends/checks.ts";
import { renderProblems } from "../cli/problems.ts";
import { loadConfig } from "../config/compile/load.ts";
import type { Surroundings } from "../config/compile/prepare.ts";
import { openConfigStore } from "../config/store/open-store.ts";
import { withDiscoveredBackends } from "../fleet/zero-configuration.ts";
import { systemClock } from "../lib/clock.ts";
import { applyLogSettings, createLogger } from "../logging/logger.ts";
import { SERVICE_NAME } from "../names.ts";
import { fallbackProblems } from "../pipeline/fallback-checks.ts";
import { namedFileReaders } from "./named-files.ts";

type Env = Record<string, string | undefined>;

/** Rules of the layers above the configuration, and how the files are read that it names. */
export function surroundings(env: Env, metadataOption: string | undefined): Surroundings {
  const backends: Surroundings["checks"][number] = (settings) => backendProblems(settings.backends);
  return { env, home: env.HOME, checks: [backends, fallbackProblems], readers: namedFileReaders(metadataOption) };
}

export async function openConfiguration(
  command: { config: string | undefined; modelMetadata: string | undefined; ignoreSaved: boolean },
  env: Env,
) {
  const failed = (message: string) => ({ ok: false as const, message });
  const cwd = process.cwd();
  const common = surroundings(env, command.modelMetadata);
  const loaded = await loadConfig({ ...common, path: command.config, cwd });
  if (!loaded.ok) return failed(renderProblems(loaded.problems, loaded.path, cwd).trimEnd());

  const discovered =
    loaded.found === undefined
      ? await withDiscoveredBackends(loaded.snapshot, env)
      : { ok: true as const, snapshot: loaded.snapshot, found: undefined };
  if (!discovered.ok) return failed(`${SERVICE_NAME}: ${discovered.message}`);
  const { snapshot, found } = discovered;

  // Told before anything is kept of the file.
  const { problem } = snapshot.attachments;
  if (problem !== undefined) return failed(`${SERVICE_NAME}: ${problem}`);
  const log = createLogger(snapshot.settings.logging);
  const { fileHash } = loaded;
  const { ignoreSaved } = command;
  const opened = await openConfigStore({ ...common, snapshot, fileHash, clock: systemClock, log, ignoreSaved });
  if (!opened.ok) {
    const told = renderProblems(opened.problems, undefined, cwd).trimEnd();
    return failed(
      `${told}\nThis is version ${opened.version}, made through the admin API; --ignore-saved starts without it.`,
    );
  }
  const { store, resumed } = opened;
  applyLogSettings(log, store.current.settings.logging);
  // Nothing was found where backends are configured, or kept.
  return { ok: true as const, store, fileHash, log, found: resumed ? undefined : found };
}
