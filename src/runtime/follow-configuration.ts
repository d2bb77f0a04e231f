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
  fleet: Pick<Fleet, "firstChecks"> & { models: Pick<ModelDirectory, "served"> };
  telemetry: { events: Pick<GatewayEvents, "configReloaded"> };
  apply(configured: Configured): void;
  clock: Clock;
  log: Logger;
}

export function followConfiguration(options: FollowOptions): FileReloader {
  const { store, fileHash, fleet, telemetry, apply, clock, log } = options;

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

  const unsubscribe = store.subscribe((snapshot, previous, changes) => {
    apply(configuredBy(snapshot));
    const { problem } = snapshot.attachments;
    // The settings apply all the same.
    if (problem !== undefined && snapshot.version !== previous.version) throw new FactsProblem(problem);
    if (!changes.some(({ section }) => section === "fallback" || section === "backends")) return [];
    void logWarnings();
    return warningsOf(snapshot.settings);
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
      const problem = await store.reattach();
      if (problem !== undefined) throw new FactsProblem(problem);
      log.info({ files: files.map(({ path }) => path) }, "files that the configuration names were read again");
    },
  });
  return {
    ...reloader,
    stop() {
      unsubscribe();
      reloader.stop();
    },
  };
}
