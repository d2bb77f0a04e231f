// Start without a configuration file: what is found on this machine becomes the backends.

import { compileDocument } from "../config/compile/compile.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import { formatPath } from "../config/values/values.ts";
import { discover, type FoundBackend } from "../discovery/discover.ts";

type ZeroConfiguration =
  /** `found` is undefined when the environment has configured backends, so that nothing was looked for. */
  { ok: true; snapshot: ConfigSnapshot; found: FoundBackend[] | undefined } | { ok: false; message: string };

export async function withDiscoveredBackends(
  snapshot: ConfigSnapshot,
  env: Record<string, string | undefined>,
): Promise<ZeroConfiguration> {
  if (snapshot.settings.backends.length > 0) return { ok: true, snapshot, found: undefined };
  const { backends, found } = await discover({ env, ownAddresses: [snapshot.settings.server.bind_address].flat() });
  const compiled = compileDocument({ ...snapshot.document, backends }, env);
  if (compiled.settings === undefined || compiled.problems.length > 0) {
    // Only an address from the environment (OPENAI_BASE_URL) can be wrong here.
    const reasons = compiled.problems.map(({ path, message }) => `${formatPath(path)}: ${message}`);
    return { ok: false, message: `what was found in the environment cannot be used:\n  ${reasons.join("\n  ")}` };
  }
  return { ok: true, snapshot: { ...snapshot, document: compiled.document, settings: compiled.settings }, found };
}
