// Google's credentials: key files of service accounts, workload identity federation, a user's own, and the metadata server.
// Sources: google-auth-library ("Application Default Credentials" of its README) and gcp-metadata for the metadata server.

import { readFile } from "node:fs/promises";
import { isGoogleJson } from "../../config/values/google-credentials.ts";
import { isObject, type JsonObject, parseObject } from "../../lib/json.ts";
import { CredentialError, type CredentialScheme, type CredentialTools } from "./credential.ts";
import { createRenewed, type Grant } from "./renewed.ts";
import { boundedAnswer, readTokenAnswer, refusedToken, unreachableIssuer } from "./token-endpoint.ts";

const SCOPE = "https://www.googleapis.com/auth/cloud-platform";
/** The library asks this one for service accounts, whatever their key file names. */
const TOKEN_URL = "https://oauth2.googleapis.com/token";
const ISSUER = "Google's token endpoint";
const METADATA_ISSUER = "the metadata server";

interface GoogleOptions {
  /** Path or JSON text; undefined: where the application default credentials stand. */
  given: string | undefined;
}

type GoogleTools = Pick<CredentialTools, "env" | "resolve" | "clock">;

export const googleCredential: CredentialScheme<GoogleOptions> = {
  optionsOf: ({ api_key, credentials }) => (api_key === undefined ? { given: credentials } : undefined),
  // The file is read again for each token, because keys are rotated by overwriting it.
  make: ({ given }, tools) => createRenewed((signal) => getToken(given, tools, signal), tools),
};

async function getToken(given: string | undefined, around: GoogleTools, signal: AbortSignal): Promise<Grant> {
  const json = await findJson(given, around);
  return json === undefined ? await askMetadataServer(around, signal) : await askLibrary(json, signal);
}

/** In the order of the application default credentials; undefined: the metadata server is asked. */
async function findJson(given: string | undefined, { env, resolve }: GoogleTools): Promise<JsonObject | undefined> {
  if (given !== undefined && isGoogleJson(given)) return readJson(given, "credentials");
  const named = given ?? env.GOOGLE_APPLICATION_CREDENTIALS;
  if (named !== undefined && named !== "") {
    const text = await readFile(resolve(named), "utf8").catch(() => undefined);
    const subject = given === undefined ? "the file in GOOGLE_APPLICATION_CREDENTIALS" : "the file in credentials";
    if (text === undefined) throw new CredentialError(`${subject} cannot be read`);
    return readJson(text, subject);
  }
  const folder = env.CLOUDSDK_CONFIG ?? (env.HOME === undefined ? undefined : `${env.HOME}/.config/gcloud`);
  if (folder === undefined) return undefined;
  const text = await readFile(`${folder}/application_default_credentials.json`, "utf8").catch(() => undefined);
  return text === undefined ? undefined : readJson(text, "the file of gcloud's application default credentials");
}

function readJson(text: string, subject: string): JsonObject {
  const json = parseObject(text);
  if (json === undefined || typeof json.type !== "string") {
    throw new CredentialError(`${subject}: this is no JSON of Google credentials, which has a "type"`);
  }
  return json;
}

async function askLibrary(json: JsonObject, signal: AbortSignal): Promise<Grant> {
  const { GoogleAuth } = await import("google-auth-library");
  const own = typeof json.token_uri === "string" ? json.token_uri : TOKEN_URL;
  const transporterOptions = {
    fetchImplementation: async (url: string | URL | Request, init?: RequestInit) => {
      const target = String(url) === TOKEN_URL ? own : String(url);
      return await boundedAnswer(ISSUER, await fetch(target, { ...init, signal, redirect: "error" }));
    },
    retry: false,
  };
  try {
    const auth = new GoogleAuth({ scopes: SCOPE });
    const client = auth.fromJSON(json as never, { transporterOptions } as never);
    const headers = await client.getRequestHeaders();
    const { access_token, expiry_date } = client.credentials;
    if (typeof access_token !== "string" || typeof expiry_date !== "number") {
      throw new CredentialError(`no access token: ${ISSUER} did not give one, or not until when it holds`);
    }
    return { headers: Object.fromEntries(headers), expiresAtMs: expiry_date };
  } catch (error) {
    if (error instanceof CredentialError) throw error;
    throw problemOf(error);
  }
}

function problemOf(error: unknown): CredentialError {
  const { response } = error as { response?: { status?: unknown; data?: unknown } };
  if (isObject(response) && typeof response.status === "number") {
    return refusedToken(ISSUER, response.status, response.data);
  }
  return unreachableIssuer(ISSUER, error);
}

/** @see https://cloud.google.com/compute/docs/metadata/querying-metadata */
async function askMetadataServer({ env, clock }: GoogleTools, signal: AbortSignal): Promise<Grant> {
  const host = env.GCE_METADATA_IP ?? env.GCE_METADATA_HOST ?? "metadata.google.internal";
  const path = "/computeMetadata/v1/instance/service-accounts/default/token";
  const headers = { "Metadata-Flavor": "Google" };
  let response: Response;
  try {
    response = await fetch(`http://${host}${path}?scopes=${SCOPE}`, { headers, signal, redirect: "error" });
  } catch {
    throw new CredentialError(
      "no Google credentials: name a key file in credentials or in GOOGLE_APPLICATION_CREDENTIALS, or run on Google Cloud, whose metadata server does not answer here",
    );
  }
  if (response.headers.get("metadata-flavor") !== "Google") {
    throw new CredentialError(`no access token: ${METADATA_ISSUER} did not answer as Google's does`);
  }
  const { access_token, expires_in } = await readTokenAnswer(METADATA_ISSUER, response);
  if (typeof access_token !== "string" || typeof expires_in !== "number") {
    throw new CredentialError(`no access token: ${METADATA_ISSUER} did not give one`);
  }
  return { headers: { authorization: `Bearer ${access_token}` }, expiresAtMs: clock.wallTime() + expires_in * 1000 };
}
