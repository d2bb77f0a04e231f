// What counts as authorities of a backend: certificates in PEM form, whole, and nothing else.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { createAuthority, selfSigned } from "../../test/support/certificates.ts";
import { settingsOf } from "../../test/support/serve-routes.ts";
import { contentHash } from "../config/files/read-text.ts";
import { isPem } from "../config/values/pem.ts";
import { loadAuthorities, pemProblem } from "./authorities.ts";

const { root, intermediate } = createAuthority();
const { leaf, key } = selfSigned(["engine.internal"]);

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "authorities-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each<[what: string, text: string]>([
  ["one", root],
  ["several", root + intermediate + leaf],
  ["with words around them", `subject=CN = Root\n${root}\nsubject=CN = Other\n${intermediate}the end\n`],
  ["with the line ends of Windows", root.replaceAll("\n", "\r\n")],
])("certificates: %s", (_what, text) => {
  expect(pemProblem(text)).toBeUndefined();
  expect(isPem(text)).toBe(true);
});

test.each<[what: string, text: string, problem: string]>([
  ["nothing", "", "holds no certificate"],
  ["other text", "MIIBszCCAVmgAwIBAgIU", "holds no certificate"],
  ["a key", key, "something other than certificates"],
  ["a key among them", leaf + key, "something other than certificates"],
  ["a damaged one", root.replace(/\n[\w+/]{9}/, "\n"), "cannot be read (number 1)"],
  ["the second one cut off", root + intermediate.slice(0, 100), "cannot be read (number 2)"],
  ["no base64", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n", "cannot be read (number 1)"],
])("no certificates: %s", (_what, text, problem) => {
  expect(pemProblem(text)).toContain(problem);
});

test("a certificate that is cut off anywhere is none", () => {
  const lengths = fc.integer({ min: 0, max: root.trimEnd().length - 1 });
  fc.assert(fc.property(lengths, (length) => pemProblem(root.slice(0, length)) !== undefined));
});

function load(...authorities: (string | undefined)[]) {
  const backends = authorities.map((ca, index) => ({
    name: `b${index}`,
    url: "https://10.0.0.1",
    ...(ca !== undefined && { tls: { ca } }),
  }));
  return loadAuthorities(settingsOf({ backends }).backends, { baseDir: folder, home: join(folder, "home") });
}

test("files are read by their names in the configuration, each once; texts are not looked for", async () => {
  mkdirSync(join(folder, "home"));
  writeFileSync(join(folder, "a.pem"), root);
  writeFileSync(join(folder, "home", "b.crt"), intermediate);
  const { texts, hashes, problems } = await load("a.pem", undefined, leaf, "~/b.crt", "a.pem");
  expect(problems).toEqual([]);
  expect([...texts]).toEqual([
    ["a.pem", root],
    ["~/b.crt", intermediate],
  ]);
  expect([...hashes]).toEqual([
    [join(folder, "a.pem"), contentHash(Buffer.from(root))],
    [join(folder, "home", "b.crt"), contentHash(Buffer.from(intermediate))],
  ]);
});

test("every problem names its field, and none shows what was read", async () => {
  writeFileSync(join(folder, "key.pem"), key);
  writeFileSync(join(folder, "empty.pem"), "");
  writeFileSync(join(folder, "der.crt"), Buffer.from([0x30, 0x82, 0xff]));
  const { problems } = await load("away.pem", "key.pem", "empty.pem", "der.crt", ".", key, "key.pem");
  expect(problems.map(({ path, message }) => [path.join("."), message])).toEqual([
    ["backends.0.tls.ca", "the file cannot be read: there is no such file"],
    ["backends.1.tls.ca", expect.stringMatching(/^the file holds something other than certificates/)],
    ["backends.2.tls.ca", expect.stringMatching(/^the file holds no certificate in PEM form/)],
    ["backends.3.tls.ca", expect.stringMatching(/^the file is not valid UTF-8 text/)],
    ["backends.4.tls.ca", "the file cannot be read: it is a folder, not a file"],
    ["backends.5.tls.ca", expect.stringMatching(/^holds something other than certificates/)],
    ["backends.6.tls.ca", expect.stringMatching(/^the file holds something other than certificates/)],
  ]);
  const firstLineOfKey = key.split("\n")[1] as string;
  expect(JSON.stringify(problems)).not.toContain(firstLineOfKey);
});
