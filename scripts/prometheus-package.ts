// Prometheus from Debian's packages, for the tests that let a real one scrape the gateway.

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { runStep } from "./run-steps.ts";

/** Programs of the package. */
const PROGRAMS = ["prometheus", "promtool"];
/** Says whether a package may start its service while it is installed; 101 means no. */
const SERVICE_POLICY = "/usr/sbin/policy-rc.d";

const INSTALL = "apt-get install -y --no-install-recommends prometheus";

/** Installs the package where that is possible and needed; false, with one line that says why, where it is not. */
export async function providePrometheus(): Promise<boolean> {
  if (isInstalled()) return true;
  if (!isDebian()) {
    console.error(
      "The tests with a real Prometheus need the programs prometheus and promtool (Debian: package prometheus).",
    );
    return false;
  }
  if (process.getuid?.() !== 0) {
    console.error(
      "The tests with a real Prometheus need the Debian package prometheus: sudo apt-get install prometheus",
    );
    return false;
  }
  const isOurPolicy = !existsSync(SERVICE_POLICY);
  if (isOurPolicy) writeFileSync(SERVICE_POLICY, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  try {
    const name = "installing the Debian package prometheus, once";
    const command = ["sh", "-c", `{ ${INSTALL} || { apt-get update && ${INSTALL}; }; } >/dev/null`];
    await runStep({ name, command, env: { DEBIAN_FRONTEND: "noninteractive" } });
  } finally {
    if (isOurPolicy) rmSync(SERVICE_POLICY, { force: true });
  }
  if (isInstalled()) return true;
  console.error("The Debian package prometheus could not be installed; see above.");
  return false;
}

function isInstalled(): boolean {
  return PROGRAMS.every((program) => Bun.which(program) !== null);
}

function isDebian(): boolean {
  const release = "/etc/os-release";
  return (
    Bun.which("apt-get") !== null && existsSync(release) && /^ID(_LIKE)?=.*debian/m.test(readFileSync(release, "utf8"))
  );
}
