// Credentials of AWS for Bedrock: keys that sign each request (Signature Version 4), found as every AWS program finds
// them, or the bearer token of the environment. AWS's own packages do both; they are loaded with the first backend that
// needs them.

import type { SignatureV4 } from "@smithy/signature-v4";
import { unlessAborted } from "../../lib/abortable-delay.ts";
import type { Clock } from "../../lib/clock.ts";
import {
  type BackendCredential,
  CredentialError,
  type CredentialHeaders,
  type CredentialScheme,
  type CredentialTools,
  type UnauthorizedRequest,
} from "../credentials/credential.ts";
import { type Expiring, keepRenewed } from "../credentials/renewed.ts";

interface AwsOptions {
  region: string;
  /** Of ~/.aws; undefined: what the environment names, and the sources behind it. */
  profile?: string | undefined;
  /** The operator's own; no other source is asked then. */
  keys?: AwsKeys | undefined;
}

interface AwsKeys {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string | undefined;
}

type KeptKeys = AwsKeys & Expiring;

/** The service in signatures, of models and of the control plane alike. */
const SERVICE = "bedrock";
const BEARER_TOKEN = "AWS_BEARER_TOKEN_BEDROCK";
/** Keys without an end are looked up again: a file may have other ones by then. */
const LOOK_AGAIN_MS = 60 * 60 * 1000;

export const AWS_CREDENTIAL: CredentialScheme<AwsOptions> = {
  optionsOf({ api_key, region = "", profile, access_key_id, secret_access_key, session_token }) {
    if (api_key !== undefined) return undefined;
    const hasKeys = access_key_id !== undefined && secret_access_key !== undefined;
    return {
      region,
      profile,
      keys: hasKeys
        ? { accessKeyId: access_key_id, secretAccessKey: secret_access_key, sessionToken: session_token }
        : undefined,
    };
  },
  make(options, tools) {
    const { keys, profile } = options;
    const token = keys === undefined && profile === undefined ? tools.env[BEARER_TOKEN] : undefined;
    return token === undefined || token === "" ? createSigner(options, tools) : bearer(token);
  },
};

function bearer(token: string): BackendCredential {
  const headers = { authorization: `Bearer ${token}` };
  return { authorize: () => headers, stop() {} };
}

function createSigner(options: AwsOptions, tools: CredentialTools): BackendCredential {
  const { clock } = tools;
  const kept = keepRenewed((signal) => findKeys(options, clock, signal), tools);
  let made: { keys: KeptKeys; signer: Promise<SignatureV4> } | undefined;

  /** One for all requests with the same keys: it remembers the key of the day that it derives from them. */
  function signerFor(keys: KeptKeys): Promise<SignatureV4> {
    if (made?.keys !== keys) made = { keys, signer: makeSigner(options.region, keys) };
    return made.signer;
  }

  return {
    async authorize(request) {
      const keys = await kept.current();
      return await sign(await signerFor(keys), request, new Date(clock.wallTime()));
    },
    refused: kept.refused,
    stop: kept.stop,
  };
}

async function makeSigner(region: string, { accessKeyId, secretAccessKey, sessionToken }: AwsKeys) {
  const { SignatureV4 } = await import("@smithy/signature-v4");
  const credentials = { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) };
  return new SignatureV4({ service: SERVICE, region, credentials, sha256: NativeSha256 });
}

const SIGNED = ["authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"] as const;

/** The other headers are not signed: they say nothing that AWS acts upon, and a proxy may change them. */
async function sign(
  signer: SignatureV4,
  { method, url, body }: UnauthorizedRequest,
  signingDate: Date,
): Promise<CredentialHeaders> {
  const { protocol, hostname, port, host, pathname, searchParams } = new URL(url);
  const request = {
    method,
    protocol,
    hostname,
    ...(port !== "" && { port: Number(port) }),
    path: pathname,
    query: Object.fromEntries(searchParams),
    headers: { host },
    body,
  };
  const { headers } = await signer.sign(request, { signingDate });
  return Object.fromEntries(
    SIGNED.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]] as const])),
  );
}

/** SHA-256 and HMAC of the runtime, as the package wants them: its own would hash pictures many times more slowly. */
class NativeSha256 {
  readonly #secret: Uint8Array | string | undefined;
  #hasher: Bun.CryptoHasher;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#secret = secret === undefined || typeof secret === "string" ? secret : bytesOf(secret);
    this.#hasher = new Bun.CryptoHasher("sha256", this.#secret);
  }

  update(data: Uint8Array | string): void {
    this.#hasher.update(data);
  }

  async digest(): Promise<Uint8Array> {
    return new Uint8Array(this.#hasher.digest());
  }

  reset(): void {
    this.#hasher = new Bun.CryptoHasher("sha256", this.#secret);
  }
}

function bytesOf(data: ArrayBuffer | ArrayBufferView): Uint8Array {
  return ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
}

async function findKeys({ region, profile, keys }: AwsOptions, clock: Clock, signal: AbortSignal): Promise<KeptKeys> {
  const nextLookMs = clock.wallTime() + LOOK_AGAIN_MS;
  if (keys !== undefined) return { ...keys, expiresAtMs: nextLookMs };
  try {
    const found = await unlessAborted(askProviders(region, profile), signal);
    const { accessKeyId, secretAccessKey, sessionToken, expiration } = found;
    return { accessKeyId, secretAccessKey, sessionToken, expiresAtMs: expiration?.getTime() ?? nextLookMs };
  } catch (error) {
    throw new CredentialError(reasonOf(error, profile));
  }
}

/** A new provider for each look: an old one would give what it has read before. */
async function askProviders(region: string, profile: string | undefined) {
  const init = { clientConfig: { region }, ignoreCache: true, logger: SILENT };
  if (profile !== undefined) {
    const { fromIni } = await import("@aws-sdk/credential-provider-ini");
    return await fromIni({ ...init, profile })();
  }
  const { defaultProvider } = await import("@aws-sdk/credential-provider-node");
  return await defaultProvider(init)();
}

const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

/** Errors of the packages whose messages name profiles, files and commands to run, and no secrets. */
const TELLING: ReadonlySet<string> = new Set(["CredentialsProviderError", "TokenProviderError", "ProviderError"]);
/** Begins a message with the whole command line of a credential_process. */
const OF_PROCESS = /^Command failed/;
const MAX_REASON_LENGTH = 300;

function reasonOf(error: unknown, profile: string | undefined): string {
  const source = profile === undefined ? "AWS credentials" : `AWS credentials of the profile ${profile}`;
  if (!(error instanceof Error)) return `no ${source}`;
  if (error.name === "TimeoutError") return `no ${source}: no answer in time`;
  if (!TELLING.has(error.name)) return `no ${source} (${error.name})`;
  if (OF_PROCESS.test(error.message)) return `no ${source}: the credential_process failed`;
  return `no ${source}: ${error.message.replace(/\s+/g, " ").trim().slice(0, MAX_REASON_LENGTH)}`;
}
