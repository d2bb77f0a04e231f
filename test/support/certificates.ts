// Certificates of a private authority, made by the program openssl: a root, an intermediate below it, and servers' own.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { programPath } from "../../scripts/debian-packages.ts";

/** All of it PEM text. */
export interface ServerCertificate {
  /** The server's certificate alone. */
  leaf: string;
  /** As a server sends it: with the intermediate where there is one, without the root. */
  chain: string;
  key: string;
}

export interface Authority {
  /** PEM text: what clients are to trust. */
  root: string;
  /** PEM text. */
  intermediate: string;
  /** A certificate for these names or addresses, signed by the intermediate; an expired one ended yesterday. */
  issue(names: readonly string[], options?: { isExpired: boolean }): ServerCertificate;
}

interface Signer {
  certificate: string;
  key: string;
}

interface Wanted {
  commonName: string;
  /** Lines of an extension file. */
  extensions: string;
  /** Without one it signs itself. */
  issuer?: Signer;
  days?: number;
}

const VALID_DAYS = 2;
const CA_EXTENSIONS = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n";

/** Two authorities are strangers to each other, whatever their names. */
export function createAuthority(name = "Private"): Authority {
  const root = sign({ commonName: `${name} root`, extensions: CA_EXTENSIONS });
  const intermediate = sign({ commonName: `${name} intermediate`, extensions: CA_EXTENSIONS, issuer: root });
  return {
    root: root.certificate,
    intermediate: intermediate.certificate,
    issue(names, { isExpired } = { isExpired: false }) {
      const days = isExpired ? -1 : VALID_DAYS;
      const { certificate, key } = sign({
        commonName: "server",
        extensions: namesOf(names),
        issuer: intermediate,
        days,
      });
      return { leaf: certificate, chain: certificate + intermediate.certificate, key };
    },
  };
}

/** Signed by nobody else. */
export function selfSigned(names: readonly string[]): ServerCertificate {
  const { certificate, key } = sign({ commonName: "server", extensions: namesOf(names) });
  return { leaf: certificate, chain: certificate, key };
}

function namesOf(names: readonly string[]): string {
  return `subjectAltName=${names.map((name) => `${isIP(name) === 0 ? "DNS" : "IP"}:${name}`).join(",")}\n`;
}

function sign({ commonName, extensions, issuer, days = VALID_DAYS }: Wanted): Signer {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-certificates-"));
  const at = (name: string) => join(folder, name);
  try {
    writeFileSync(at("extensions"), extensions);
    const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", at("key")];
    openssl("req", ...newKey, "-subj", `/CN=${commonName}`, "-out", at("request"));
    const result = ["-days", String(days), "-extfile", at("extensions"), "-out", at("certificate")];
    openssl("x509", "-req", "-in", at("request"), ...signedBy(issuer, at), ...result);
    return { certificate: readFileSync(at("certificate"), "utf8"), key: readFileSync(at("key"), "utf8") };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function signedBy(issuer: Signer | undefined, at: (name: string) => string): string[] {
  if (issuer === undefined) return ["-signkey", at("key")];
  writeFileSync(at("issuer"), issuer.certificate);
  writeFileSync(at("issuer-key"), issuer.key, { mode: 0o600 });
  return ["-CA", at("issuer"), "-CAkey", at("issuer-key"), "-CAserial", at("serial"), "-CAcreateserial"];
}

function openssl(...command: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync([programPath("openssl"), ...command], { stdin: "ignore" });
  if (exitCode !== 0) throw new Error(`openssl ${command[0]} failed: ${stderr.toString()}`);
}
