// From the command line to the configuration that runs: the file, what is found without one, or the version that was kept.

import { admissionProblems } from "../admission/checks.ts";
import { backendProblems } from "../backends/checks.ts";
import { unfinishedRestore } from "../backup/unfinished-restore.ts";
import { renderProblems } from "../cli/problems.ts";
import { loadConfig } from "../config/compile/load.ts";
import type { DocumentSurroundings } from "../config/compile/prepare.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import { openGuestStore } from "../config/store/open-guest-store.ts";
import { openConfigStore } from "../config/store/open-store.ts";
import type { Environment } from "../config/values/expand.ts";
import { resolvePath } from "../config/values/paths.ts";
import type { Problem } from "../config/values/problems.ts";
import { systemClock } from "../lib/clock.ts";
import { applyLogSettings, createLogger } from "../logging/logger.ts";
import { routeProblems } from "../model-routes/checks.ts";
import { SERVICE_NAME } from "../names.ts";
import { fallbackProblems } from "../pipeline/fallback-checks.ts";
import { namedFileReaders } from "./named-files.ts";

/** Rules of the layers above the configuration, and how the files are read that it names. */
export function surroundings(env: Environment, metadataOption: string | undefined): DocumentSurroundings {
  const backends: DocumentSurroundings["checks"][number] = (settings) => backendProblems(settings.backends);
  return {
    env,
    home: env.HOME,
    checks: [backends, fallbackProblems, routeProblems, admissionProblems],
    readers: namedFileReaders(metadataOption),
  };
}

interface StartCommand {
  config: string | undefined;
  modelMetadata: string | undefined;
  ignoreSaved: boolean;
}

const failed = (message: string) => ({ ok: false as const, message });

export async function openConfiguration(command: StartCommand, env: Environment) {
  const { cwd, common, loaded } = await load(command, env);
  if (!loaded.ok) return failed(renderProblems(loaded.problems, loaded.path, cwd).trimEnd());

  const discovered =
    loaded.found === undefined
      ? await findBackends(loaded.snapshot, env)
      : { ok: true as const, snapshot: loaded.snapshot, findings: undefined };
  if (!discovered.ok) return failed(`${SERVICE_NAME}: ${discovered.message}`);
  const { snapshot, findings } = discovered;

  // Told before anything is kept of the file.
  const problem = cannotStart(snapshot, env);
  if (problem !== undefined) return failed(`${SERVICE_NAME}: ${problem}`);
  const log = createLogger(snapshot.settings.logging);
  const { fileHash } = loaded;
  const { ignoreSaved } = command;
  const opened = await openConfigStore({ ...common, snapshot, fileHash, clock: systemClock, log, ignoreSaved });
  if (!opened.ok) return failed(cannotResume(opened, cwd));
  const { store, resumed } = opened;
  applyLogSettings(log, store.current.settings.logging);
  // Nothing was found where backends are configured, or kept.
  return { ok: true as const, store, fileHash, log, findings: resumed ? undefined : findings };
}

export type AgentConfiguration = Extract<Awaited<ReturnType<typeof openAgentConfiguration>>, { ok: true }>;

/**
 * The configuration that a gateway would start with, for a process beside it. Backends are searched for later if there is no
 * file.
 */
export async function openAgentConfiguration(command: StartCommand, env: Environment) {
  const { cwd, common, loaded } = await load(command, env);
  if (!loaded.ok) return failed(renderProblems(loaded.problems, loaded.path, cwd).trimEnd());
  const { snapshot, fileHash } = loaded;
  const problem = cannotStart(snapshot, env);
  if (problem !== undefined) return failed(`${SERVICE_NAME}: ${problem}`);
  const log = createLogger(snapshot.settings.logging);
  const { ignoreSaved } = command;
  const opened = await openGuestStore({ ...common, snapshot, fileHash, clock: systemClock, log, ignoreSaved });
  if (!opened.ok) return failed(cannotResume(opened, cwd));
  const { store, resumed, followSaved } = opened;
  applyLogSettings(log, store.current.settings.logging);

  /** Throws StartProblem. */
  async function discover(): Promise<void> {
    if (loaded.ok && (loaded.found !== undefined || resumed)) return;
    const discovered = await findBackends(snapshot, env);
    if (!discovered.ok) throw new StartProblem(`${SERVICE_NAME}: ${discovered.message}`);
    if (discovered.findings === undefined) return;
    await store.follow(discovered.snapshot.document);
    const found = discovered.findings.found.map(({ name, how }) => `${name} (${how})`);
    const unrecognised = discovered.findings.unrecognised.map(({ address, said }) => `${address} (${said})`);
    log.info(
      { found, ...(unrecognised.length > 0 && { unrecognised }) },
      "there is no configuration file; these backends were found",
    );
  }

  return { ok: true as const, store, fileHash, log, discover, followSaved };
}

/** The message is printed before the process ends. */
export class StartProblem extends Error {
  override readonly name = "StartProblem";
}

/** Not loaded when there is a configuration file. */
async function findBackends(snapshot: ConfigSnapshot, env: Environment) {
  const { withDiscoveredBackends } = await import("../fleet/zero-configuration.ts");
  return await withDiscoveredBackends(snapshot, env);
}

async function load(command: StartCommand, env: Environment) {
  const cwd = process.cwd();
  const common = surroundings(env, command.modelMetadata);
  return { cwd, common, loaded: await loadConfig({ ...common, path: command.config, cwd }) };
}

function cannotStart({ settings, baseDir, attachments }: ConfigSnapshot, env: Environment): string | undefined {
  return attachments.problem ?? unfinishedRestore(resolvePath(settings.server.data_dir, baseDir, env.HOME));
}

function cannotResume({ problems, version }: { problems: Problem[]; version: number }, cwd: string): string {
  const told = renderProblems(problems, undefined, cwd).trimEnd();
  return `${told}\nThis is version ${version}, made through the admin API; --ignore-saved starts without it.`;
}
