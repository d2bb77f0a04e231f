// The public keys of token issuers that stand in files (api_keys.jwt[].jwks_file).

import { readText } from "../../config/files/read-text.ts";
import type { Settings } from "../../config/sections/registry.ts";
import { resolvePath } from "../../config/values/paths.ts";
import type { CheckPlace, Problem } from "../../config/values/problems.ts";
import { isMapping } from "../../config/values/values.ts";

interface KeySetFiles {
  /** Texts of the files, by the names that the configuration gives them. */
  texts: Map<string, string>;
  /** Absolute paths of the files, with the hashes of what was read. */
  hashes: Map<string, string>;
  /** Each problem names its key. */
  problems: Problem[];
}

export async function loadKeySets(
  issuers: Settings["api_keys"]["jwt"],
  { baseDir, home }: CheckPlace,
): Promise<KeySetFiles> {
  const found: KeySetFiles = { texts: new Map(), hashes: new Map(), problems: [] };
  for (const [index, { jwks_file }] of issuers.entries()) {
    if (jwks_file === undefined || found.texts.has(jwks_file)) continue;
    const path = resolvePath(jwks_file, baseDir, home);
    const read = await readText(path);
    const problem = "message" in read ? read.message : keySetProblem(read.text);
    if ("message" in read || problem !== undefined) {
      found.problems.push({ path: ["api_keys", "jwt", index, "jwks_file"], message: `the file ${problem}` });
      continue;
    }
    found.texts.set(jwks_file, read.text);
    found.hashes.set(path, read.hash);
  }
  return found;
}

/** Why a text is not a set of public keys (RFC 7517, section 5). A key that can sign has no place on the side that checks. */
export function keySetProblem(text: string): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "is not JSON";
  }
  const keys: unknown = isMapping(value) ? value.keys : undefined;
  if (!Array.isArray(keys) || keys.length === 0) return 'holds no keys: expected {"keys": […]} as in RFC 7517';
  const wrong = keys.findIndex((key) => !isMapping(key) || typeof key.kty !== "string");
  if (wrong !== -1) return `holds an entry without kty (number ${wrong + 1})`;
  const secret = keys.findIndex((key) => key.d !== undefined || key.k !== undefined);
  return secret === -1 ? undefined : `holds a secret key (number ${secret + 1}); leave only the public part`;
}
