// Start without a configuration file: what is found on this machine becomes the backends.

import { compileDocument } from "../config/compile/compile.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import { formatPath } from "../config/values/values.ts";
import { type Discovery, discover } from "../discovery/discover.ts";
import { PORTS_VARIABLE, readPorts, USUAL_PORTS } from "../discovery/ports.ts";

/** Engines found without a configuration, and servers that were not recognised. */
export type Findings = Pick<Discovery, "found" | "unrecognised">;

type ZeroConfiguration =
  /** `findings` is undefined when the environment has configured backends, so that nothing was looked for. */
  { ok: true; snapshot: ConfigSnapshot; findings: Findings | undefined } | { ok: false; message: string };

export async function withDiscoveredBackends(
  snapshot: ConfigSnapshot,
  env: Record<string, string | undefined>,
): Promise<ZeroConfiguration> {
  if (snapshot.settings.backends.length > 0) return { ok: true, snapshot, findings: undefined };
  const ports = env[PORTS_VARIABLE] ? readPorts(env[PORTS_VARIABLE]) : USUAL_PORTS;
  if (ports === undefined) {
    return { ok: false, message: `${PORTS_VARIABLE}: expected up to 32 ports such as "8080,9931", or "none"` };
  }
  const ownAddresses = [snapshot.settings.server.bind_address].flat();
  const { backends, ...findings } = await discover({ env, ports, ownAddresses });
  const compiled = compileDocument({ ...snapshot.document, backends }, env);
  if (compiled.settings === undefined || compiled.problems.length > 0) {
    // Only an address from the environment (OPENAI_BASE_URL) can be wrong here.
    const reasons = compiled.problems.map(({ path, message }) => `${formatPath(path)}: ${message}`);
    return { ok: false, message: `what was found in the environment cannot be used:\n  ${reasons.join("\n  ")}` };
  }
  return { ok: true, snapshot: { ...snapshot, document: compiled.document, settings: compiled.settings }, findings };
}
