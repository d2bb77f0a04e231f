// Parts of the gateway that follow changes of the configuration.

import type { FieldChange } from "../change/diff.ts";
import type { ConfigSnapshot } from "../compile/snapshot.ts";

/** The log of layers above this one. */
export interface ConfigLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** What whoever made the change should know. */
type Warnings = readonly string[];

/** May be asynchronous; the change waits for it, within limits. */
export type ConfigListener = (
  snapshot: ConfigSnapshot,
  previous: ConfigSnapshot,
  changes: readonly FieldChange[],
) => void | Warnings | Promise<void> | Promise<Warnings>;

const TIMEOUT_MS = 1_000;

export interface Listeners {
  /** Returns the function that ends the subscription. */
  add(listener: ConfigListener): () => void;
  /** Nobody can stop the change any more: what goes wrong becomes a warning, among those of the listeners. */
  announce(snapshot: ConfigSnapshot, previous: ConfigSnapshot, changes: readonly FieldChange[]): Promise<string[]>;
  clear(): void;
}

export function createListeners(log: ConfigLog): Listeners {
  const listeners = new Set<ConfigListener>();

  const failed = (error: unknown, version: number): Warnings => {
    log.error({ err: error, version }, "a part of the gateway could not follow a configuration change");
    return ["a part of the gateway could not follow the change; see the log"];
  };

  async function tell(call: () => ReturnType<ConfigListener>, version: number): Promise<Warnings> {
    let timer: Timer | undefined;
    try {
      const done = call();
      if (!(done instanceof Promise)) return done ?? [];
      const late = Promise.withResolvers<Warnings>();
      timer = setTimeout(() => late.resolve(["a part of the gateway takes long to follow the change"]), TIMEOUT_MS);
      // A failure after the deadline is logged too.
      const settled = done.then(
        (warnings) => warnings ?? [],
        (error) => failed(error, version),
      );
      return await Promise.race([settled, late.promise]);
    } catch (error) {
      return failed(error, version);
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    add(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async announce(snapshot, previous, changes) {
      const warnings: string[] = [];
      for (const listener of [...listeners]) {
        warnings.push(...(await tell(() => listener(snapshot, previous, changes), snapshot.version)));
      }
      return warnings;
    },
    clear() {
      listeners.clear();
    },
  };
}
