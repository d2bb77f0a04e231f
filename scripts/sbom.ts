// sh bin/bun scripts/sbom.ts <file>: what an installation holds, as an SBOM (CycloneDX). npm leaves out packages that tests
// need as well where it is told to omit those of the tests, so that it is asked in a copy which has no others.

import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "..");

const target = process.argv[2];
if (target === undefined) throw new Error("name the file to write");
const temporary = mkdtempSync(join(tmpdir(), "signalbox-sbom-"));
try {
  // npm names what it describes after the folder.
  const copy = join(temporary, "signalbox");
  mkdirSync(copy);
  for (const name of ["package.json", "package-lock.json", ".npmrc"]) copyFileSync(join(ROOT, name), join(copy, name));
  npm(copy, "pkg", "delete", "devDependencies");
  npm(copy, "install", "--package-lock-only", "--ignore-scripts", "--prefer-offline");
  writeFileSync(target, npm(copy, "sbom", "--sbom-format", "cyclonedx", "--package-lock-only"));
} finally {
  rmSync(temporary, { recursive: true, force: true });
}

function npm(cwd: string, ...words: string[]): string {
  const { status, stdout } = spawnSync("npm", [...words, "--loglevel=error"], {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    maxBuffer: 64 * 1024 ** 2,
  });
  if (status !== 0) throw new Error(`npm ${words.join(" ")} exited ${status}`);
  return stdout;
}
