// The configuration of a gateway inside another program: an object in place of a file.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { renderProblems } from "../cli/problems.ts";
import { describeChangeError } from "../config/change/change.ts";
import { prepareDocument } from "../config/compile/prepare.ts";
import type { ConfigDocument } from "../config/sections/registry.ts";
import { openConfigStore } from "../config/store/open-store.ts";
import type { ConfigStore } from "../config/store/store.ts";
import { ConfigurationError } from "../config/values/configuration-error.ts";
import type { Environment } from "../config/values/expand.ts";
import type { Problem } from "../config/values/problems.ts";
import type { Mapping } from "../config/values/values.ts";
import { systemClock } from "../lib/clock.ts";
import { applyLogSettings, type Logger } from "../logging/logger.ts";
import { surroundings } from "./open-configuration.ts";

interface ObjectConfiguration {
  store: ConfigStore;
  /** Of the object, as of a file: what was changed through the admin API stays while the object does. */
  hash: string;
  /** Puts another object in force. Throws ConfigurationError, and what was in force stays. */
  update(written: ConfigDocument): Promise<void>;
  /** Closes the store, and removes the folder where the configuration names none. */
  close(): void;
}

interface ObjectPlace {
  env: Environment;
  /** Relative paths begin here. */
  baseDir: string;
  log: Logger;
}

/** Throws ConfigurationError. */
export async function openObjectConfiguration(
  written: ConfigDocument,
  { env, baseDir, log }: ObjectPlace,
): Promise<ObjectConfiguration> {
  const common = surroundings(env, undefined);
  let temporary: string | undefined;
  const close = () => {
    if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true });
  };
  /** Without server.data_dir nothing outlives the gateway. */
  const placed = (document: ConfigDocument): Mapping => {
    const copy = structuredClone(document);
    if (copy.server?.data_dir !== undefined || env.SIGNALBOX_SERVER__DATA_DIR !== undefined) return copy;
    temporary ??= mkdtempSync(join(tmpdir(), "signalbox-"));
    return { ...copy, server: { ...copy.server, data_dir: temporary } };
  };
  try {
    const document = placed(written);
    const { compiled, problems, crossProblems } = await prepareDocument(document, { ...common, baseDir });
    const found = [...problems, ...crossProblems];
    if (compiled === undefined || found.length > 0) throw refusal(found, baseDir);
    const { problem } = compiled.attachments;
    if (problem !== undefined) throw new ConfigurationError(problem);
    applyLogSettings(log, { ...compiled.settings.logging, format: "json" });
    const appliedAtMs = systemClock.wallTime();
    const snapshot = { ...compiled, version: 1, appliedAtMs, path: undefined, baseDir };
    const hash = hashOf(document);
    const opened = await openConfigStore({ ...common, snapshot, fileHash: hash, clock: systemClock, log });
    if (!opened.ok) throw refusal(opened.problems, baseDir);
    const { store } = opened;
    return {
      store,
      hash,
      async update(next) {
        const document = placed(next);
        const result = await store.applyFile(document, { hash: hashOf(document) });
        if (result.ok) return;
        if (result.error.kind === "validation") throw refusal(result.error.problems, baseDir);
        throw new ConfigurationError(`the configuration: ${describeChangeError(result.error)}`);
      },
      close() {
        store.close();
        close();
      },
    };
  } catch (error) {
    close();
    throw error;
  }
}

function refusal(problems: readonly Problem[], cwd: string): ConfigurationError {
  return new ConfigurationError(renderProblems(problems, undefined, cwd).trimEnd(), problems);
}

function hashOf(document: Mapping): string {
  return new Bun.CryptoHasher("sha256").update(JSON.stringify(document)).digest("hex");
}
