import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { credentialsOf } from "../change/credentials.ts";
import { RevokedSecrets, readRevoked } from "./revoked-secrets.ts";

const withKeys = (...keys: string[]) => ({ api_keys: { keys: keys.map((key, index) => ({ id: `k${index}`, key })) } });
const credentials = (...keys: string[]) => credentialsOf(withKeys(...keys), {});

test("what does not fit is forgotten by age, but never what the file still holds, and versions before it are not trusted", () => {
  const file = withKeys("in-the-file");
  let revoked = new RevokedSecrets(() => "salt", undefined, 3);
  for (const [index, key] of ["in-the-file", "b", "c", "d", "e"].entries()) {
    revoked = revoked.withRevoked(credentials(key), index + 2, file, {});
  }
  const isKnown = (key: string) => credentials(key).every((credential) => revoked.has(credential));
  expect(["in-the-file", "b", "c", "d", "e"].map(isKnown)).toEqual([true, false, false, true, true]);
  expect([2, 3, 4].map((version) => revoked.isForgotten(version))).toEqual([true, true, false]);
});

test("the database holds digests that need the salt, and no secret", () => {
  const sqlite = new Database(":memory:");
  sqlite.run("CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT)");
  new RevokedSecrets(() => "salt").withRevoked(credentials("sekret"), 2, {}, {}).write(sqlite);
  expect(JSON.stringify(sqlite.query("SELECT value FROM state").all())).not.toContain("sekret");
  const [credential] = credentials("sekret");
  expect(readRevoked(sqlite, () => "salt").has(credential as never)).toBe(true);
  expect(readRevoked(sqlite, () => "another").has(credential as never)).toBe(false);
});
