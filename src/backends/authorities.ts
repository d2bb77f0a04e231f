// The certificates that those of backends are checked with (backends[].tls.ca): PEM text, or files of it.

import { readText } from "../config/files/read-text.ts";
import type { Settings } from "../config/sections/registry.ts";
import { resolvePath } from "../config/values/paths.ts";
import { isPem, PEM_BEGIN } from "../config/values/pem.ts";
import type { CheckPlace, Problem } from "../config/values/problems.ts";

interface Authorities {
  /** Texts of the files, by the names that the configuration gives them. */
  texts: Map<string, string>;
  /** Absolute paths of the files, with the hashes of what was read. */
  hashes: Map<string, string>;
  /** Each problem names its key. */
  problems: Problem[];
}

/** Reads the files, and checks them as well as the texts in the settings themselves. */
export async function loadAuthorities(
  backends: Settings["backends"],
  { baseDir, home }: CheckPlace,
): Promise<Authorities> {
  const found: Authorities = { texts: new Map(), hashes: new Map(), problems: [] };

  /** Returns the problem of the certificate; undefined for a good one. */
  async function load(ca: string): Promise<string | undefined> {
    if (isPem(ca)) return pemProblem(ca);
    const path = resolvePath(ca, baseDir, home);
    const read = await readText(path);
    const problem = "message" in read ? read.message : pemProblem(read.text);
    if ("message" in read || problem !== undefined) return `the file ${problem}`;
    found.texts.set(ca, read.text);
    found.hashes.set(path, read.hash);
    return undefined;
  }

  for (const [index, { tls }] of backends.entries()) {
    if (tls?.ca === undefined || found.texts.has(tls.ca)) continue;
    const message = await load(tls.ca);
    if (message !== undefined) found.problems.push({ path: ["backends", index, "tls", "ca"], message });
  }
  return found;
}

/** Why a text is not one or more certificates and nothing else. Takes time in proportion to its length. */
export function pemProblem(text: string): string | undefined {
  const [, ...blocks] = text.split(PEM_BEGIN);
  if (blocks.length === 0) return 'holds no certificate in PEM form ("-----BEGIN CERTIFICATE-----")';
  if (!blocks.every((block) => block.startsWith("CERTIFICATE-----"))) {
    return "holds something other than certificates, such as a key; leave only the certificates of the authority";
  }
  const wrong = blocks.findIndex((block) => !isCertificate(PEM_BEGIN + block));
  if (wrong === -1) return undefined;
  return `holds a certificate that cannot be read (number ${wrong + 1}); it is damaged or cut off`;
}

function isCertificate(pem: string): boolean {
  const { X509Certificate } = process.getBuiltinModule("node:crypto"); // few gateways need it
  try {
    new X509Certificate(pem);
    return true;
  } catch {
    return false; // its reasons are the words of the TLS library, and do not help here
  }
}
