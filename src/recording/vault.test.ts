import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { createVault, DIGEST_BYTES, readVaultKey } from "./vault.ts";

const vault = createVault(new Uint8Array(32).fill(7));
const bytes = fc.uint8Array({ maxLength: 2_000 });

test("what was sealed is opened again, by its owner, id and key alone", () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), bytes, (owner, id, content) => {
      const sealed = vault.seal(owner, id, content);
      expect(new Uint8Array(vault.open(owner, id, sealed) as Uint8Array)).toEqual(new Uint8Array(content));
      expect(vault.open(`${owner}x`, id, sealed)).toBeUndefined();
      expect(vault.open(owner, `${id}x`, sealed)).toBeUndefined();
      expect(createVault(new Uint8Array(32).fill(8)).open(owner, id, sealed)).toBeUndefined();
    }),
  );
});

test("a changed or shortened content is not opened", () => {
  fc.assert(
    fc.property(bytes, fc.nat(), fc.integer({ min: 1, max: 255 }), (content, place, change) => {
      const sealed = vault.seal("owner", "id", content);
      const changed = Uint8Array.from(sealed);
      changed[place % sealed.length] = (changed[place % sealed.length] as number) ^ change;
      expect(vault.open("owner", "id", changed)).toBeUndefined();
      expect(vault.open("owner", "id", sealed.subarray(0, place % sealed.length))).toBeUndefined();
    }),
  );
});

test("digests of words depend on the word and the key, and on nothing else", () => {
  const other = createVault(new Uint8Array(32).fill(8));
  const hex = (digests: Uint8Array) => Buffer.from(digests).toString("hex");
  fc.assert(
    fc.property(fc.uniqueArray(fc.stringMatching(/^[a-z0-9_]{1,64}$/), { maxLength: 20 }), (words) => {
      const digests = vault.wordDigests([words.join(" ")]);
      expect(digests.length).toBe(words.length * DIGEST_BYTES);
      const single = words.map((word) => hex(vault.wordDigests([word])));
      expect(single.join("")).toBe(hex(digests));
      expect(new Set(single).size).toBe(words.length);
      for (const [index, word] of words.entries()) {
        expect(hex(other.wordDigests([word]))).not.toBe(single[index] as string);
      }
    }),
  );
});

test("no bit of a word's hash can be seen in its digest", () => {
  // Words that differ in one letter have hashes that differ in few bits; their digests differ in half of the bits.
  const bitsOf = (word: string) => Buffer.from(vault.wordDigests([word])).readUInt32LE();
  let differing = 0;
  for (let count = 0; count < 1_000; count++) {
    let bits = bitsOf(`a${count}`) ^ bitsOf(`b${count}`);
    for (; bits !== 0; bits &= bits - 1) differing++;
  }
  expect(differing / 1_000).toBeWithin(15, 17);
});

test("the key is made once, and only its owner can read it", () => {
  const folder = mkdtempSync(join(tmpdir(), "vault-"));
  const path = join(folder, "below", "recording.key");
  const key = readVaultKey(path);
  expect(key.length).toBe(32);
  expect(Buffer.from(readVaultKey(path))).toEqual(Buffer.from(key));
  expect(statSync(path).mode & 0o777).toBe(0o600);
  writeFileSync(path, "short");
  expect(() => readVaultKey(path)).toThrow("32 bytes");
  rmSync(folder, { recursive: true });
});
