// Microsoft Entra ID's tokens: of an application with a secret, of a federated workload, and of a managed identity.
// Sources: Microsoft, "OAuth 2.0 client credentials flow", "Workload identity federation" and "Use managed identities to
// acquire an access token"; @azure/identity for the variables of the environment and their order.

import { readFile } from "node:fs/promises";
import type { BackendSettings } from "../../config/sections/registry.ts";
import { CredentialError, type CredentialScheme, type CredentialTools } from "./credential.ts";
import { createRenewed, type Grant } from "./renewed.ts";
import { readTokenAnswer, unreachableIssuer } from "./token-endpoint.ts";

type EntraSettings = NonNullable<BackendSettings["entra_id"]>;
type EntraTools = Pick<CredentialTools, "env" | "resolve" | "clock">;

const AUTHORITY = "https://login.microsoftonline.com";
const ISSUER = "Entra ID";
const MANAGED_ISSUER = "the endpoint of the managed identity";
const ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

export const entraCredential: CredentialScheme<EntraSettings> = {
  optionsOf: ({ api_key, entra_id }) => (api_key === undefined ? entra_id : undefined),
  make: (settings, tools) => createRenewed((signal) => getToken(settings, tools, signal), tools),
};

/** In the order of Microsoft's own libraries: a secret, a federated token, a managed identity. */
async function getToken(settings: EntraSettings, around: EntraTools, signal: AbortSignal): Promise<Grant> {
  const { client_secret, federated_token_file } = settings;
  const { AZURE_CLIENT_SECRET, AZURE_FEDERATED_TOKEN_FILE } = around.env;
  // What the configuration says comes before what the environment says.
  const secret = client_secret ?? (federated_token_file === undefined ? AZURE_CLIENT_SECRET : undefined);
  if (secret !== undefined) return await askEntra(settings, [["client_secret", secret]], around, signal);
  const file = federated_token_file ?? AZURE_FEDERATED_TOKEN_FILE;
  if (file === undefined) return await askManagedIdentity(settings, around, signal);
  // The file is read again for each token, because the platform renews it.
  const assertion = await readFile(around.resolve(file), "utf8").catch(() => undefined);
  if (assertion === undefined) throw new CredentialError("the file with the federated token cannot be read");
  const proof: [string, string][] = [
    ["client_assertion", assertion.trim()],
    ["client_assertion_type", ASSERTION_TYPE],
  ];
  return await askEntra(settings, proof, around, signal);
}

async function askEntra(
  { tenant_id, client_id, scope }: EntraSettings,
  proof: [string, string][],
  { env, clock }: EntraTools,
  signal: AbortSignal,
): Promise<Grant> {
  const tenant = tenant_id ?? env.AZURE_TENANT_ID;
  const client = client_id ?? env.AZURE_CLIENT_ID;
  if (tenant === undefined || client === undefined) {
    throw new CredentialError("entra_id needs tenant_id and client_id, or AZURE_TENANT_ID and AZURE_CLIENT_ID");
  }
  const authority = (env.AZURE_AUTHORITY_HOST ?? AUTHORITY).replace(/\/+$/, "");
  const form: [string, string][] = [
    ["grant_type", "client_credentials"],
    ["client_id", client],
    ["scope", scope],
    ...proof,
  ];
  const url = `${authority}/${encodeURIComponent(tenant)}/oauth2/v2.0/token`;
  return await ask(ISSUER, url, { method: "POST", body: new URLSearchParams(form), signal }, clock);
}

/** App Service and Functions name an endpoint in the environment; virtual machines and Kubernetes have the metadata service. */
async function askManagedIdentity(
  { client_id, scope }: EntraSettings,
  { env, clock }: EntraTools,
  signal: AbortSignal,
): Promise<Grant> {
  const { IDENTITY_ENDPOINT, IDENTITY_HEADER, AZURE_POD_IDENTITY_AUTHORITY_HOST } = env;
  const client = client_id ?? env.AZURE_CLIENT_ID;
  const isAppService = IDENTITY_ENDPOINT !== undefined && IDENTITY_HEADER !== undefined;
  const host = AZURE_POD_IDENTITY_AUTHORITY_HOST ?? "http://169.254.169.254";
  const query = new URLSearchParams({
    "api-version": isAppService ? "2019-08-01" : "2018-02-01",
    resource: scope.replace(/\/\.default$/, ""),
    ...(client !== undefined && { client_id: client }),
  });
  const url = isAppService ? IDENTITY_ENDPOINT : `${host.replace(/\/+$/, "")}/metadata/identity/oauth2/token`;
  const headers: Record<string, string> = isAppService
    ? { "X-IDENTITY-HEADER": IDENTITY_HEADER }
    : { Metadata: "true" };
  return await ask(MANAGED_ISSUER, `${url}?${query}`, { headers, signal }, clock);
}

async function ask(issuer: string, url: string, init: RequestInit, clock: CredentialTools["clock"]): Promise<Grant> {
  let response: Response;
  try {
    response = await fetch(url, { ...init, redirect: "error" });
  } catch (error) {
    throw unreachableIssuer(issuer, error);
  }
  const { access_token, expires_in } = await readTokenAnswer(issuer, response);
  // The endpoints of managed identities write numbers as texts.
  const seconds = Number(expires_in);
  if (typeof access_token !== "string" || !Number.isFinite(seconds)) {
    throw new CredentialError(`no access token: ${issuer} did not give one`);
  }
  return { headers: { authorization: `Bearer ${access_token}` }, expiresAtMs: clock.wallTime() + seconds * 1000 };
}
