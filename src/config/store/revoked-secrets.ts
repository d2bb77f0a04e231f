// Secrets that let callers in and were revoked: remembered as keyed digests, and refused wherever an earlier document would
// bring one back, until the configuration file names it again.

import type { Database } from "bun:sqlite";
import { type Credential, credentialsOf } from "../change/credentials.ts";
import type { Environment } from "../values/expand.ts";
import type { Mapping } from "../values/values.ts";
import { readState, writeState } from "./state.ts";

interface SavedRevocations {
  forgottenBefore: number;
  /** Digest, and the first version without the secret; the oldest first. */
  secrets: [digest: string, version: number][];
}

const NONE: SavedRevocations = { forgottenBefore: 0, secrets: [] };

const STATE_KEY = "revoked_secrets";

/** More are remembered only while the file itself holds them. */
const MAXIMUM_REMEMBERED = 10_000;

/** Two documents with canonical keys, and the environment that both are read with. */
interface Step {
  before: Mapping;
  after: Mapping;
  env: Environment;
}

export class RevokedSecrets {
  readonly #saved: SavedRevocations;
  readonly #versions: ReadonlyMap<string, number>;
  /** Asked for once there is something to remember or to compare. */
  readonly #salt: () => string;
  readonly #maximum: number;

  constructor(salt: () => string, saved: SavedRevocations = NONE, maximum: number = MAXIMUM_REMEMBERED) {
    this.#salt = salt;
    this.#saved = saved;
    this.#versions = new Map(saved.secrets);
    this.#maximum = maximum;
  }

  has(credential: Pick<Credential, "section" | "secret">): boolean {
    return this.#versions.size > 0 && this.#versions.has(this.#digestOf(credential));
  }

  /** Secrets revoked since that version are no longer known: none of its secrets may come back. */
  isForgotten(version: number): boolean {
    return version < this.#saved.forgottenBefore;
  }

  /** Those that the edited file names again are valid again. */
  withEdit({ before, after, env }: Step): RevokedSecrets {
    if (this.#versions.size === 0) return this;
    const known = new Set(credentialsOf(before, env).map(nameOf));
    const named = credentialsOf(after, env).filter((credential) => !known.has(nameOf(credential)));
    return this.#without(named);
  }

  /** Those of a file that counts alone are valid, whatever was revoked. */
  withFileAlone(file: Mapping, env: Environment): RevokedSecrets {
    return this.#versions.size === 0 ? this : this.#without(credentialsOf(file, env));
  }

  /** `version` has them no longer. The file itself may still: what it names is never forgotten. */
  withRevoked(credentials: readonly Credential[], version: number, file: Mapping, env: Environment): RevokedSecrets {
    if (credentials.length === 0) return this;
    const versions = new Map(this.#versions);
    for (const credential of credentials) {
      const digest = this.#digestOf(credential);
      versions.delete(digest);
      versions.set(digest, version);
    }
    let { forgottenBefore } = this.#saved;
    if (versions.size > this.#maximum) {
      const inFile = new Set(credentialsOf(file, env).map((credential) => this.#digestOf(credential)));
      for (const [digest, last] of versions) {
        if (versions.size <= this.#maximum) break;
        if (inFile.has(digest)) continue;
        versions.delete(digest);
        forgottenBefore = Math.max(forgottenBefore, last);
      }
    }
    return this.#next({ forgottenBefore, secrets: [...versions] });
  }

  write(sqlite: Database): void {
    writeState(sqlite, STATE_KEY, JSON.stringify(this.#saved));
  }

  #without(credentials: readonly Credential[]): RevokedSecrets {
    const digests = new Set(credentials.map((credential) => this.#digestOf(credential)));
    const secrets = this.#saved.secrets.filter(([digest]) => !digests.has(digest));
    return secrets.length === this.#saved.secrets.length ? this : this.#next({ ...this.#saved, secrets });
  }

  #next(saved: SavedRevocations): RevokedSecrets {
    return new RevokedSecrets(this.#salt, saved, this.#maximum);
  }

  /** Of its own kind: a key of clients is not a credential of the admin API. */
  #digestOf({ section, secret }: Pick<Credential, "section" | "secret">): string {
    const hasher = new Bun.CryptoHasher("sha256", this.#salt());
    return hasher.update(`revoked\0${section}\0${secret}`).digest("base64url").slice(0, DIGEST_LENGTH);
  }
}

/** In characters of 6 bits. */
const DIGEST_LENGTH = 24;

/** Equal for the same secret of the same kind. */
export function nameOf({ section, secret }: Pick<Credential, "section" | "secret">): string {
  return `${section}\0${secret}`;
}

/** Throws for what no gateway has written. */
export function readRevoked(sqlite: Database, salt: () => string): RevokedSecrets {
  const saved = readState(sqlite, STATE_KEY);
  return new RevokedSecrets(salt, saved === undefined ? NONE : JSON.parse(saved));
}
