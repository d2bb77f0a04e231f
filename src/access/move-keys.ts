// Brings keys that an earlier release kept in the configuration, because the admin API had made them, into the key store: once
// for each data folder.

import type { ConfigStore } from "../config/store/store.ts";
import { type Mapping, valueAt } from "../config/values/values.ts";
import type { KeyIdentity } from "./key-identity.ts";
import type { KeyStore } from "./key-store.ts";

const KEYS = ["api_keys", "keys"];

interface MovingParts {
  store: Pick<ConfigStore, "current" | "file" | "edit">;
  keyStore: KeyStore;
  identify: KeyIdentity;
  log: { info(fields: object, message: string): void };
}

export async function moveKeys({ store, keyStore, identify, log }: MovingParts): Promise<void> {
  if (keyStore.problem !== undefined || keyStore.isMoved) return;
  const { document, settings } = store.current;
  const written = entriesIn(document);
  const ofFile = entriesIn(store.file);
  const moved = written.flatMap((entry, index) => {
    const key = settings.api_keys.keys[index];
    return key === undefined || ofFile.some((known) => isSameEntry(entry, known))
      ? []
      : [{ entry, key, id: identify(key) }];
  });
  for (const { entry, key, id } of moved) {
    if (keyStore.knows(key.key) !== undefined) continue; // moved before a crash
    const { key: _, previous: __, id: ___, ...rights } = entry;
    const { previous } = key;
    const first = previous?.key ?? key.key;
    if (keyStore.knows(first) === undefined) keyStore.add(id, rights, first); // else a crash came before the second one
    if (previous !== undefined) {
      keyStore.change(id, rights, { secret: key.key, previousUntilMs: previous.expires_at });
    }
  }
  if (moved.length > 0) {
    const ids = moved.map(({ id }) => id);
    const result = await store.edit((current) => {
      const kept = entriesIn(current).filter((entry) => !moved.some((each) => isSameEntry(each.entry, entry)));
      const description = "keys that the admin API had made are in the key store from now on";
      return { sections: { api_keys: { keys: kept } }, mode: "merge", source: "key_store", description };
    });
    if (!result.ok) return;
    log.info({ keys: ids.length }, "API keys that the admin API had made are in the key store from now on");
  }
  keyStore.isMoved = true;
}

/** The keys that a document has, as they are written. */
export function entriesIn(document: Mapping | undefined): readonly Mapping[] {
  const found = document === undefined ? undefined : valueAt(document, KEYS);
  return Array.isArray(found) ? (found as Mapping[]) : [];
}

/** Whether both are one key as it is written: the same id, or without one the same secret. */
export function isSameEntry(one: Mapping, other: Mapping): boolean {
  return one.id === undefined ? one.key === other.key : one.id === other.id;
}
