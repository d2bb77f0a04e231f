// Carries every change of the configuration to the gateway, and returns warnings to the author of the change.

import { AttachmentProblem } from "../config/compile/attachments.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { ConfigStore } from "../config/store/store.ts";
import type { Fleet } from "../fleet/fleet.ts";
import type { ModelDirectory } from "../fleet/model-directory.ts";
import type { Logger } from "../logging/logger.ts";
import { routeWarnings } from "../model-routes/checks.ts";
import { chainWarnings } from "../pipeline/fallback-checks.ts";

/** Sections by which it is warned of models that no backend serves. */
const NAMING_MODELS: ReadonlySet<string> = new Set(["fallback", "routes", "backends"]);

/** Returns the function that ends it. */
export function followConfiguration(
  store: ConfigStore,
  apply: (snapshot: ConfigSnapshot) => void,
  fleet: Pick<Fleet, "firstChecks"> & { models: Pick<ModelDirectory, "served"> },
  log: Pick<Logger, "warn">,
): () => void {
  /** Of models that no backend serves; none while it is not known what backends serve. */
  function warningsOf(settings: Settings): string[] {
    const served = fleet.models.served();
    return served === undefined ? [] : [...chainWarnings(settings, served), ...routeWarnings(settings, served)];
  }

  /** In the log, as soon as new backends had the time to say what they serve. */
  async function logWarnings(): Promise<void> {
    await fleet.firstChecks;
    for (const warning of warningsOf(store.current.settings)) log.warn({}, warning);
  }

  void logWarnings();
  return store.subscribe((snapshot, previous, changes) => {
    apply(snapshot);
    const { problem } = snapshot.attachments;
    // The settings apply all the same.
    if (problem !== undefined && snapshot.version !== previous.version) throw new AttachmentProblem(problem);
    if (!changes.some(({ section }) => NAMING_MODELS.has(section))) return [];
    void logWarnings();
    return warningsOf(snapshot.settings);
  });
}
