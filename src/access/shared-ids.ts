// Ids of keys that stand in the configuration and in the key store.

import type { Settings } from "../config/sections/registry.ts";
import type { KeyIdentity } from "./key-identity.ts";
import type { KeyStore } from "./key-store.ts";

interface SharedIdsParts {
  keyStore: Pick<KeyStore, "find" | "isEmpty" | "problem">;
  identify: KeyIdentity;
  log: { warn(fields: object, message: string): void };
}

const MESSAGE =
  "a key with this id is in the configuration and in the key store: both secrets are valid, and /admin/keys/{id} is the one of the store; remove one of them";

/** Logs each such id once, and returns a warning for those that a change has brought. */
export function createSharedIdsCheck({ keyStore, identify, log }: SharedIdsParts) {
  let known: ReadonlySet<string> = new Set();

  function isStored(id: string): boolean {
    try {
      return keyStore.find(id) !== undefined;
    } catch {
      return false; // its storage problem is told elsewhere
    }
  }

  return ({ api_keys: { keys } }: Pick<Settings, "api_keys">): string[] => {
    if (keyStore.problem !== undefined || keyStore.isEmpty) return [];
    const shared = new Set(keys.map(identify).filter(isStored));
    const found = [...shared].filter((id) => !known.has(id));
    known = shared;
    for (const id of found) log.warn({ key: id }, MESSAGE);
    return found.map((id) => `api_keys.keys: ${id}: ${MESSAGE}`);
  };
}
