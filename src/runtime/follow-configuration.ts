// Carries every change of the configuration to the parts that run: both planes see it at the same moment.

import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { Settings } from "../config/sections/registry.ts";
import { type FileReloader, followConfigFile } from "../config/store/file-reload.ts";
import type { ConfigStore } from "../config/store/store.ts";
import type { Fleet } from "../fleet/fleet.ts";
import type { ModelDirectory } from "../fleet/model-directory.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import type { GatewayEvents } from "../metrics/gateway-events.ts";
import type { ModelMetadataSource } from "../models/metadata.ts";
import { chainWarnings } from "../pipeline/fallback-checks.ts";
import type { PromptFiles } from "../prompts/prompt-files.ts";
import type { Configured } from "./data-plane.ts";

/** What the settings name besides themselves: metadata and prompts from files. */
export interface ReadFacts {
  metadata: ModelMetadataSource;
  promptFiles: PromptFiles;
  /** Absolute paths of the files, with the hashes of what was read. */
  files: ReadonlyMap<string, string>;
}

/** Rejects with what is wrong. */
export type FactsReader = (snapshot: ConfigSnapshot) => Promise<ReadFacts>;

export interface FollowOptions {
  store: ConfigStore;
  fileHash: string | undefined;
  facts: ReadFacts;
  readFacts: FactsReader;
  fleet: Pick<Fleet, "firstChecks"> & { models: Pick<ModelDirectory, "served"> };
  telemetry: { events: Pick<GatewayEvents, "configReloaded"> };
  apply(configured: Configured): void;
  clock: Clock;
  log: Logger;
}

export interface ConfigurationFollower extends FileReloader {
  /** The prompts in force. */
  promptFiles(): PromptFiles;
  /** From the next request on. */
  usePromptFiles(files: PromptFiles): void;
}

export function followConfiguration(options: FollowOptions): ConfigurationFollower {
  const { store, fileHash, readFacts, fleet, telemetry, apply, clock, log } = options;
  let { facts } = options;
  let newestTurn = 0;

  /** Of models that nobody serves; none while it is not known what backends serve. */
  function warningsOf(settings: Settings): string[] {
    const served = fleet.models.served();
    return served === undefined ? [] : chainWarnings(settings, served);
  }

  /** In the log, as soon as new backends had the time to say what they serve. */
  async function logWarnings(): Promise<void> {
    await fleet.firstChecks;
    for (const warning of warningsOf(store.current.settings)) log.warn({}, warning);
  }

  /** Files that cannot be read leave the ones that were read before in force; the settings apply all the same. */
  async function follow(snapshot: ConfigSnapshot): Promise<string[]> {
    const turn = ++newestTurn;
    let read: ReadFacts | undefined;
    let problem: unknown;
    try {
      read = await readFacts(snapshot);
    } catch (error) {
      problem = error;
    }
    // While files were read, a later change may have begun: it carries everything that this one does.
    if (turn !== newestTurn) return [];
    facts = read ?? facts;
    const { settings } = snapshot;
    apply({ settings, ...facts });
    if (problem !== undefined) throw problem;
    return warningsOf(settings);
  }

  const unsubscribe = store.subscribe(async (snapshot, _previous, changes) => {
    const warnings = await follow(snapshot);
    if (!changes.some(({ section }) => section === "fallback" || section === "backends")) return [];
    void logWarnings();
    return warnings;
  });
  void logWarnings();
  const reloader = followConfigFile({
    store,
    clock,
    log,
    fileHash,
    reloaded: (isOk) => telemetry.events.configReloaded(isOk),
    otherFiles: () => facts.files,
    async otherFilesChanged(files) {
      await follow(store.current);
      log.info({ files: files.map(({ path }) => path) }, "files that the configuration names were read again");
    },
  });
  return {
    ...reloader,
    promptFiles: () => facts.promptFiles,
    usePromptFiles(promptFiles) {
      facts = { ...facts, promptFiles };
      apply({ settings: store.current.settings, ...facts });
    },
    stop() {
      unsubscribe();
      reloader.stop();
    },
  };
}
