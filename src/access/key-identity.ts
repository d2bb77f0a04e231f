// By which name a key is known in logs, limits and to what it owns: its id, else a keyed digest of its secret.

import { lazily } from "../lib/lazily.ts";

interface NamedKey {
  key: string;
  id?: string | undefined;
}

/** The same for the same key wherever it stands in the list, and in every process that shares the salt. */
export type KeyIdentity = (key: NamedKey) => string;

const DIGEST_LENGTH = 10;

/** `salt` is asked for once, when the first key without an id is met. */
export function createKeyIdentity(salt: () => string): KeyIdentity {
  const once = lazily(salt);
  return ({ key, id }) => {
    if (id !== undefined) return id;
    return `key-${new Bun.CryptoHasher("sha256", once()).update(key).digest("hex").slice(0, DIGEST_LENGTH)}`;
  };
}
