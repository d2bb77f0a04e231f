// Endpoints on loopback that hand out access tokens as strictly as Google's, Microsoft's and the metadata servers of both.

import { generateKeyPairSync } from "node:crypto";
import { decodeProtectedHeader, importSPKI, jwtVerify } from "jose";

export interface TokenIssuer extends Disposable {
  url: string;
  /** What was asked, in order: the grant, and what proved who asks. */
  asked: { path: string; form: Record<string, string>; headers: Record<string, string> }[];
  /** The token that was handed out last. */
  readonly token: string;
  /** Whether a token is one of those that were handed out. */
  hasIssued(token: string): boolean;
  /** Seconds that the next tokens last. */
  lifetime: number;
  /** Answers instead of a token, while it is set. */
  failure: { status: number; body: unknown } | undefined;
  stop(): void;
}

type Grant = { status: number; body: unknown } | undefined;

function startIssuer(
  check: (path: string, form: Record<string, string>, headers: Record<string, string>) => Promise<Grant> | Grant,
  render: (token: string, lifetime: number) => unknown = (access_token, expires_in) => ({
    access_token,
    expires_in,
    token_type: "Bearer",
  }),
  answerHeaders: Record<string, string> = {},
): TokenIssuer {
  let count = 0;
  const issued = new Set<string>();
  const issuer = {
    asked: [] as TokenIssuer["asked"],
    lifetime: 3600,
    failure: undefined as TokenIssuer["failure"],
    hasIssued: (token: string) => issued.has(token),
    get token() {
      return `sekret-token-${count}`;
    },
  };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      const text = await request.text();
      const form = Object.fromEntries(request.method === "POST" ? new URLSearchParams(text) : searchParams);
      const headers = Object.fromEntries(request.headers);
      issuer.asked.push({ path: pathname, form, headers });
      const refused = issuer.failure ?? (await check(pathname, form, headers));
      if (refused !== undefined) return Response.json(refused.body, { status: refused.status, headers: answerHeaders });
      count++;
      issued.add(issuer.token);
      return Response.json(render(issuer.token, issuer.lifetime), { headers: answerHeaders });
    },
  });
  server.unref(); // scripts end without stopping it
  const stop = () => void server.stop(true);
  return Object.assign(issuer, { url: `http://127.0.0.1:${server.port}`, stop, [Symbol.dispose]: stop });
}

const INVALID_GRANT = { status: 400, body: { error: "invalid_grant", error_description: "Invalid JWT Signature." } };
const INVALID_REQUEST = { status: 400, body: { error: "invalid_request" } };

export const SERVICE_ACCOUNT = "gateway@p-1.iam.gserviceaccount.com";
const SCOPE = "https://www.googleapis.com/auth/cloud-platform";

/** Google's token endpoint, the key file of a service account, the credentials of a user, and those of a federated workload. */
export function startGoogleIssuer() {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const spki = publicKey.export({ type: "spki", format: "pem" }).toString();
  const issuer = startIssuer(async (path, form) => {
    if (path === "/sts") {
      const isRight = form.subject_token === "sekret-subject" && form.scope === SCOPE;
      return isRight && form.grant_type === "urn:ietf:params:oauth:grant-type:token-exchange"
        ? undefined
        : INVALID_GRANT;
    }
    if (form.grant_type === "refresh_token") {
      const isRight = form.refresh_token === "sekret-refresh" && form.client_secret === "sekret-client";
      return isRight ? undefined : INVALID_GRANT;
    }
    if (form.grant_type !== "urn:ietf:params:oauth:grant-type:jwt-bearer") return INVALID_REQUEST;
    const { assertion = "" } = form;
    try {
      const { payload } = await jwtVerify(assertion, await importSPKI(spki, "RS256"), {
        audience: "https://oauth2.googleapis.com/token",
        issuer: SERVICE_ACCOUNT,
        requiredClaims: ["iat", "exp", "scope"],
      });
      return payload.scope === SCOPE && decodeProtectedHeader(assertion).alg === "RS256" ? undefined : INVALID_GRANT;
    } catch {
      return INVALID_GRANT;
    }
  });
  const key = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const serviceAccount = {
    type: "service_account",
    project_id: "p-1",
    private_key_id: "sekret-key-id",
    private_key: key,
    client_email: SERVICE_ACCOUNT,
    token_uri: `${issuer.url}/token`,
  };
  const user = {
    type: "authorized_user",
    client_id: "client",
    client_secret: "sekret-client",
    refresh_token: "sekret-refresh",
    quota_project_id: "p-billed",
    token_uri: `${issuer.url}/token`,
  };
  const workload = (subjectFile: string) => ({
    type: "external_account",
    audience: "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/provider",
    subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
    token_url: `${issuer.url}/sts`,
    credential_source: { file: subjectFile },
  });
  return Object.assign(issuer, { serviceAccount, user, workload });
}

/** Google's metadata server. */
export function startGoogleMetadata(): TokenIssuer {
  const flavor = { "Metadata-Flavor": "Google" };
  return startIssuer(
    (path, form, headers) => {
      if (headers["metadata-flavor"] !== "Google") return { status: 403, body: {} };
      const isRight = path === "/computeMetadata/v1/instance/service-accounts/default/token" && form.scopes === SCOPE;
      return isRight ? undefined : { status: 404, body: {} };
    },
    undefined,
    flavor,
  );
}

/** Entra ID's token endpoint for the tenant t-1 and the application app-1, with a secret or a federated token. */
export function startEntraIssuer(scope = "https://cognitiveservices.azure.com/.default"): TokenIssuer {
  const refused = (error: string) => ({
    status: 401,
    body: { error, error_description: "AADSTS7000215 sekret-words" },
  });
  return startIssuer((path, form) => {
    if (path !== "/t-1/oauth2/v2.0/token") return { status: 400, body: { error: "invalid_tenant" } };
    if (form.grant_type !== "client_credentials" || form.scope !== scope) return INVALID_REQUEST;
    if (form.client_id !== "app-1") return refused("unauthorized_client");
    if (form.client_secret !== undefined) {
      return form.client_secret === "sekret-of-the-app" ? undefined : refused("invalid_client");
    }
    const isJwt = form.client_assertion_type === "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    return isJwt && form.client_assertion === "sekret-federated" ? undefined : refused("invalid_client");
  });
}

/** Azure's metadata service, and the endpoint that App Service has in its place. */
export function startAzureMetadata(): TokenIssuer {
  return startIssuer(
    (path, form, headers) => {
      if (form.resource !== "https://cognitiveservices.azure.com") return INVALID_REQUEST;
      const isMachine = path === "/metadata/identity/oauth2/token" && form["api-version"] === "2018-02-01";
      if (isMachine && headers.metadata === "true") return undefined;
      const isService = path === "/msi/token" && form["api-version"] === "2019-08-01";
      return isService && headers["x-identity-header"] === "sekret-header" ? undefined : INVALID_REQUEST;
    },
    // It writes numbers as texts.
    (access_token, expires_in) => ({ access_token, expires_in: String(expires_in), token_type: "Bearer" }),
  );
}
