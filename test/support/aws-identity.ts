// Where AWS hands out keys, on loopback: the metadata service of an instance (IMDSv2), that of a container, the portal of IAM
// Identity Center (SSO) and the security token service (STS). Each gives the keys that it is told to give.

import type { AwsKey } from "./strict/aws-signature.ts";

export interface AwsIdentity extends Disposable {
  url: string;
  /** What the next question is answered with. */
  give: AwsKey & { livesMs?: number };
  /** Questions that were answered with keys, by who was asked. */
  answered: string[];
  stop(): void;
}

const SESSION_TOKEN = "sekret-imds-session";
const HOUR_MS = 3_600_000;
export const CONTAINER_TOKEN = "sekret-container-token";
export const SSO_TOKEN = "sekret-sso-token";
export const WEB_IDENTITY = "sekret-web-identity";

export function startAwsIdentity(first: AwsKey): AwsIdentity {
  const identity = { give: first as AwsIdentity["give"], answered: [] as string[] };

  function keys(who: string) {
    identity.answered.push(who);
    const { accessKeyId, secretAccessKey, sessionToken = "", livesMs = HOUR_MS } = identity.give;
    return { accessKeyId, secretAccessKey, sessionToken, expiration: Date.now() + livesMs };
  }

  function metadataKeys(who: string) {
    const { accessKeyId, secretAccessKey, sessionToken, expiration } = keys(who);
    return Response.json({
      Code: "Success",
      Type: "AWS-HMAC",
      LastUpdated: new Date().toISOString(),
      AccessKeyId: accessKeyId,
      SecretAccessKey: secretAccessKey,
      Token: sessionToken,
      Expiration: new Date(expiration).toISOString(),
    });
  }

  async function stsKeys(request: Request): Promise<Response> {
    const form = new URLSearchParams(await request.text());
    if (form.get("WebIdentityToken") !== WEB_IDENTITY) return new Response("<Error/>", { status: 400 });
    const { accessKeyId, secretAccessKey, sessionToken, expiration } = keys(String(form.get("Action")));
    const credentials =
      `<AccessKeyId>${accessKeyId}</AccessKeyId><SecretAccessKey>${secretAccessKey}</SecretAccessKey>` +
      `<SessionToken>${sessionToken}</SessionToken><Expiration>${new Date(expiration).toISOString()}</Expiration>`;
    return new Response(
      `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>${credentials}</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
      { headers: { "content-type": "text/xml" } },
    );
  }

  const refused = () => new Response("no", { status: 401 });
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      const { method, headers } = request;
      if (pathname === "/latest/api/token") {
        const isAsked = method === "PUT" && headers.has("x-aws-ec2-metadata-token-ttl-seconds");
        return isAsked ? new Response(SESSION_TOKEN) : refused();
      }
      if (pathname.startsWith("/latest/meta-data/")) {
        if (headers.get("x-aws-ec2-metadata-token") !== SESSION_TOKEN) return refused();
        return pathname.endsWith("/security-credentials/") ? new Response("gateway-role") : metadataKeys("instance");
      }
      if (pathname === "/v2/credentials/gateway") {
        return headers.get("authorization") === CONTAINER_TOKEN ? metadataKeys("container") : refused();
      }
      if (pathname === "/federation/credentials") {
        const isKnown = headers.get("x-amz-sso_bearer_token") === SSO_TOKEN && searchParams.get("role_name") === "dev";
        return isKnown ? Response.json({ roleCredentials: keys("sso") }) : refused();
      }
      if (method === "POST" && pathname === "/") return await stsKeys(request);
      return new Response("unknown", { status: 404 });
    },
  });
  const stop = () => void server.stop(true);
  return Object.assign(identity, { url: `http://127.0.0.1:${server.port}`, stop, [Symbol.dispose]: stop });
}
