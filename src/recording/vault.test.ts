import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { createVault, readVaultKey } from "./vault.ts";

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

test("digests of words are whole numbers that depend on the key", () => {
  const other = createVault(new Uint8Array(32).fill(8));
  fc.assert(
    fc.property(fc.string(), (word) => {
      const digest = vault.wordDigest(word);
      expect(Number.isSafeInteger(digest)).toBe(true);
      expect(vault.wordDigest(word)).toBe(digest);
      expect(other.wordDigest(word)).not.toBe(digest);
    }),
  );
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
