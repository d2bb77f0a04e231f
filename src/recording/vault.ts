// Encrypts what is recorded: with a key of the data folder, from which each owner's key follows. Also makes the digests by which
// words are found without being written down.

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { WordHashes } from "./words.ts";

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const FORM = 1;
const BLOCK_BYTES = 16;
const BLOCK_NUMBERS = 4;
/** Of a word's digest. */
export const DIGEST_BYTES = 4;
const MOST_OWNERS = 1_000;

export interface Vault {
  /** @param id - only under this id can it be opened again */
  seal(owner: string, id: string, content: Uint8Array): Uint8Array;
  /** Undefined where it was sealed with another key, for another owner or id, or was changed. */
  open(owner: string, id: string, sealed: Uint8Array): Uint8Array | undefined;
  /** Of each different word of the texts, one behind the other, each of DIGEST_BYTES. */
  wordDigests(texts: Iterable<string>): Uint8Array;
}

export function createVault(master: Uint8Array): Vault {
  const derived = (info: string) => new Uint8Array(hkdfSync("sha256", master, "", info, KEY_BYTES));
  /** Blocks of this mode do not depend on each other: one cipher does them all, as they come. */
  const digesting = createCipheriv("aes-256-ecb", derived("words"), null).setAutoPadding(false);
  const hashes = new WordHashes();
  const keys = new Map<string, Uint8Array>();

  function keyOf(owner: string): Uint8Array {
    const known = keys.get(owner);
    if (known !== undefined) return known;
    if (keys.size >= MOST_OWNERS) keys.clear();
    const key = derived(`owner ${owner}`);
    keys.set(owner, key);
    return key;
  }

  return {
    seal(owner, id, content) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", keyOf(owner), nonce).setAAD(Buffer.from(id));
      const sealed = [cipher.update(content), cipher.final()];
      return Buffer.concat([Uint8Array.of(FORM), nonce, cipher.getAuthTag(), ...sealed]);
    },
    open(owner, id, sealed) {
      const content = sealed.subarray(1 + NONCE_BYTES + TAG_BYTES);
      if (sealed[0] !== FORM || sealed.length < 1 + NONCE_BYTES + TAG_BYTES) return undefined;
      const decipher = createDecipheriv("aes-256-gcm", keyOf(owner), sealed.subarray(1, 1 + NONCE_BYTES));
      decipher.setAAD(Buffer.from(id)).setAuthTag(sealed.subarray(1 + NONCE_BYTES, 1 + NONCE_BYTES + TAG_BYTES));
      try {
        return Buffer.concat([decipher.update(content), decipher.final()]);
      } catch {
        return undefined;
      }
    },
    wordDigests(texts) {
      const words = hashes.of(texts);
      // AES of one block is the keyed function, so that all words are one call.
      const blocks = new Uint32Array(words.length * BLOCK_NUMBERS);
      for (let index = 0; index < words.length; index++) blocks[index * BLOCK_NUMBERS] = words[index] as number;
      const sealed = digesting.update(blocks);
      const digests = new Uint8Array((sealed.length / BLOCK_BYTES) * DIGEST_BYTES);
      for (let from = 0, to = 0; to < digests.length; from += BLOCK_BYTES, to += DIGEST_BYTES) {
        for (let byte = 0; byte < DIGEST_BYTES; byte++) digests[to + byte] = sealed[from + byte] as number;
      }
      return digests;
    },
  };
}

/** The key in a file, which is made where there is none. Throws the file system's error, and for a file that holds none. */
export function readVaultKey(path: string): Uint8Array {
  try {
    return checked(path, readFileSync(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // Several processes may begin at once: the link is made by one of them, and the others read its key.
  const draft = `${path}.${process.pid}.tmp`;
  writeFileSync(draft, randomBytes(KEY_BYTES), { mode: 0o600, flush: true });
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  return checked(path, readFileSync(path));
}

function checked(path: string, key: Uint8Array): Uint8Array {
  if (key.length === KEY_BYTES) return key;
  throw new Error(`${path} holds no key: it must have ${KEY_BYTES} bytes`);
}
