// Programs from Debian's packages, for those who let real ones work with the gateway.

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";

/** Package -> its programs. */
const PACKAGES = {
  prometheus: ["prometheus", "promtool"],
  nginx: ["nginx"],
  haproxy: ["haproxy"],
  openssl: ["openssl"],
  "redis-server": ["redis-server"],
  caddy: ["caddy"],
  systemd: ["systemd-analyze"],
  chromium: ["chromium"],
  procps: ["ps"],
} as const satisfies Record<string, readonly string[]>;

export type DebianPackage = keyof typeof PACKAGES;
type Program = (typeof PACKAGES)[DebianPackage][number];

/** Says whether a package may start its service while it is installed; 101 means no. */
const SERVICE_POLICY = "/usr/sbin/policy-rc.d";

/** Installs packages where that is possible and needed; false, with one line that says why, where it is not. */
export async function providePackages(...packages: DebianPackage[]): Promise<boolean> {
  const missing = packages.filter((name) => !isInstalled(name));
  if (missing.length === 0) return true;
  const names = missing.join(" ");
  if (!isDebian()) {
    const programs = missing.flatMap((name) => PACKAGES[name]).join(", ");
    console.error(`Not installed here: ${programs} (Debian: apt-get install ${names}).`);
    return false;
  }
  if (process.getuid?.() !== 0) {
    console.error(`Not installed here: sudo apt-get install ${names}`);
    return false;
  }
  const isOurPolicy = !existsSync(SERVICE_POLICY);
  if (isOurPolicy) writeFileSync(SERVICE_POLICY, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  const install = `apt-get install -y --no-install-recommends ${names}`;
  try {
    console.error(`installing from Debian, once: ${names}`);
    const command = ["sh", "-c", `{ ${install} || { apt-get update && ${install}; }; } >/dev/null`];
    const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
    await Bun.spawn(command, { stdio: ["ignore", "inherit", "inherit"], env }).exited;
  } finally {
    if (isOurPolicy) rmSync(SERVICE_POLICY, { force: true });
  }
  if (missing.every(isInstalled)) return true;
  console.error(`These Debian packages could not be installed, see above: ${names}`);
  return false;
}

/** Throws where the program is missing. */
export function programPath(program: Program): string {
  const path = findProgram(program);
  if (path !== null) return path;
  const name = (Object.keys(PACKAGES) as DebianPackage[]).find((key) => PACKAGES[key].some((each) => each === program));
  throw new Error(`${program} is missing: install the Debian package ${name} (npm test does it as root)`);
}

/** Servers are in sbin, which is not in every user's PATH. */
function findProgram(program: string): string | null {
  return Bun.which(program, { PATH: `${process.env.PATH ?? ""}:/usr/local/sbin:/usr/sbin:/sbin` });
}

function isInstalled(name: DebianPackage): boolean {
  return PACKAGES[name].every((program) => findProgram(program) !== null);
}

function isDebian(): boolean {
  const release = "/etc/os-release";
  return (
    Bun.which("apt-get") !== null && existsSync(release) && /^ID(_LIKE)?=.*debian/m.test(readFileSync(release, "utf8"))
  );
}
