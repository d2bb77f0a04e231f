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
import { createModelMetadata } from "../models/metadata.ts";
import { chainWarnings } from "../pipeline/fallback-checks.ts";
import type { PromptFiles } from "../prompts/prompt-files.ts";
import type { Configured } from "./data-plane.ts";

/** A file that the command line or the configuration names is missing or wrong. */
class FactsProblem extends Error {
  override readonly name = "FactsProblem";
}

export function configuredBy({ settings, attachments: { metadata, promptFiles } }: ConfigSnapshot): Configured {
  return { settings, metadata: createModelMetadata({ backends: settings.backends, external: metadata }), promptFiles };
}

export interface FollowOptions {
  store: ConfigStore;
  fileHash: string | undefined;
  /** What runs at first. */
  configured: Configured;
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
  const { store, fileHash, fleet, telemetry, apply, clock, log } = options;
  let { configured } = options;

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
  function follow(snapshot: ConfigSnapshot): string[] {
    configured = configuredBy(snapshot);
    apply(configured);
    const { problem } = snapshot.attachments;
    if (problem !== undefined) throw new FactsProblem(problem);
    return warningsOf(snapshot.settings);
  }

  const unsubscribe = store.subscribe((snapshot, _previous, changes) => {
    const warnings = follow(snapshot);
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
    otherFiles: () => store.current.attachments.files,
    async otherFilesChanged(files) {
      await store.reattach();
      follow(store.current);
      log.info({ files: files.map(({ path }) => path) }, "files that the configuration names were read again");
    },
  });
  return {
    ...reloader,
    promptFiles: () => store.current.attachments.promptFiles,
    usePromptFiles(promptFiles) {
      store.attach({ promptFiles });
      configured = { ...configured, promptFiles };
      apply(configured);
    },
    stop() {
      unsubscribe();
      reloader.stop();
    },
  };
}
