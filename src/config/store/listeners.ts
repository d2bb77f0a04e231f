// How parts of the gateway follow changes of the configuration.

import { type FieldChange, replacedFields } from "../change/diff.ts";
import type { ConfigSnapshot } from "../compile/snapshot.ts";

export interface ConfigLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Returns what the author of the change should know. */
export type ConfigListener = (
  snapshot: ConfigSnapshot,
  previous: ConfigSnapshot,
  changes: readonly FieldChange[],
) => readonly string[] | undefined;

interface ToldEdit {
  changes: readonly FieldChange[];
  leftOut: readonly string[];
  version: number;
}

/** Logs which changes through the API an edited file has replaced, and which of its secrets are left out. */
export function tellEdit(log: Pick<ConfigLog, "warn">, { changes, leftOut, version }: ToldEdit): void {
  const fields = replacedFields(changes);
  if (fields.length > 0) {
    log.warn({ fields, version }, "the configuration file replaced changes that were made through the admin API");
  }
  if (leftOut.length > 0) {
    const message = "secrets of the configuration file were revoked or have expired and are left out; give other ones";
    log.warn({ fields: leftOut, version }, message);
  }
}

export function describeLeftOut(fields: readonly string[]): string | undefined {
  return fields.length === 0 ? undefined : `left out, because revoked or expired: ${fields.join(", ")}`.slice(0, 200);
}

/** The change can no longer be stopped: what goes wrong becomes a warning, among those of the listeners. */
export function announce(
  listeners: ReadonlySet<ConfigListener>,
  told: Parameters<ConfigListener>,
  log: Pick<ConfigLog, "error">,
): string[] {
  return [...listeners].flatMap((listener) => {
    try {
      return listener(...told) ?? [];
    } catch (err) {
      log.error({ err, version: told[0].version }, "a part of the gateway could not follow a configuration change");
      return ["a part of the gateway could not follow the change; see the log"];
    }
  });
}
