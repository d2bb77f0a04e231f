// Where a backend of type bedrock finds its credentials: as every AWS program does, from fakes on loopback that hand out keys
// which the strict fake of the service then asks for.

import { afterAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { CONTAINER_TOKEN, SSO_TOKEN, startAwsIdentity, WEB_IDENTITY } from "../support/aws-identity.ts";
import { type StrictBedrockOptions, startStrictBedrock } from "../support/strict/bedrock.ts";
import { answer, text } from "../support/strict/script.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const NOVA = "us.amazon.nova-2-lite-v1:0";
const bed = createTestBed();
const folder = mkdtempSync(join(tmpdir(), "signalbox-aws-"));
const keyNamed = (name: string) => ({
  accessKeyId: `AKID${name.toUpperCase()}`,
  secretAccessKey: `sekret-${name}`,
  sessionToken: `sekret-session-${name}`,
});
const identity = startAwsIdentity(keyNamed("first"));
const options: StrictBedrockOptions = { models: [NOVA] };
const strict = await startStrictBedrock(() => answer(text("hello")), options);
afterAll(() => {
  identity.stop();
  strict.stop();
  rmSync(folder, { recursive: true });
});

/** A file below the folder. */
function write(path: string, words: string): string {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, words);
  return file;
}

const keyFile = ({ accessKeyId, secretAccessKey, sessionToken }: ReturnType<typeof keyNamed>) =>
  `aws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\naws_session_token = ${sessionToken}\n`;

const processAnswer = {
  Version: 1,
  AccessKeyId: keyNamed("process").accessKeyId,
  SecretAccessKey: "sekret-process",
  SessionToken: "sekret-session-process",
};
const configFile = write(
  "config",
  `[profile dev]
sso_session = corp
sso_account_id = 123456789012
sso_role_name = dev
[sso-session corp]
sso_region = us-east-1
sso_start_url = https://corp.awsapps.com/start
sso_registration_scopes = sso:account:access
[profile tool]
credential_process = cat ${write("process.json", JSON.stringify(processAnswer))}
[profile broken]
credential_process = false --token sekret-of-a-tool
`,
);
const credentialsFile = write(
  "credentials",
  `[default]\n${keyFile(keyNamed("default"))}[work]\n${keyFile(keyNamed("work"))}`,
);
const ssoCache = createHash("sha1").update("corp").digest("hex");
write(
  `.aws/sso/cache/${ssoCache}.json`,
  JSON.stringify({ accessToken: SSO_TOKEN, expiresAt: new Date(Date.now() + 3_600_000).toISOString() }),
);

/** Nothing outside of the test is asked. */
const NOWHERE = {
  HOME: folder,
  AWS_CONFIG_FILE: configFile,
  AWS_SHARED_CREDENTIALS_FILE: join(folder, "none"),
  AWS_EC2_METADATA_DISABLED: "true",
};

const start = (env: Record<string, string>, more: object = {}) =>
  bed.process({
    environment: { ...NOWHERE, ...env },
    config: {
      retry: { max_attempts: 1 },
      backends: [{ name: "aws", type: "bedrock", url: strict.url, region: "us-east-1", models: [NOVA], ...more }],
    },
  });

const first = keyNamed("environment");
const SOURCES: { name: string; env: Record<string, string>; more?: object }[] = [
  {
    name: "environment",
    env: {
      AWS_ACCESS_KEY_ID: first.accessKeyId,
      AWS_SECRET_ACCESS_KEY: first.secretAccessKey,
      AWS_SESSION_TOKEN: first.sessionToken,
    },
  },
  { name: "default", env: { AWS_SHARED_CREDENTIALS_FILE: credentialsFile } },
  { name: "work", env: { AWS_SHARED_CREDENTIALS_FILE: credentialsFile, AWS_PROFILE: "work" } },
  { name: "work", env: { AWS_SHARED_CREDENTIALS_FILE: credentialsFile }, more: { profile: "work" } },
  { name: "process", env: {}, more: { profile: "tool" } },
  { name: "sso", env: { AWS_ENDPOINT_URL_SSO: identity.url }, more: { profile: "dev" } },
  {
    name: "web",
    env: {
      AWS_ENDPOINT_URL_STS: identity.url,
      AWS_ROLE_ARN: "arn:aws:iam::123456789012:role/gateway",
      AWS_WEB_IDENTITY_TOKEN_FILE: write("token", WEB_IDENTITY),
    },
  },
  {
    name: "container",
    env: {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${identity.url}/v2/credentials/gateway`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN: CONTAINER_TOKEN,
    },
  },
  {
    name: "instance",
    env: { AWS_EC2_METADATA_DISABLED: "false", AWS_EC2_METADATA_SERVICE_ENDPOINT: identity.url },
  },
];

test.each(SOURCES)("$name", async ({ name, env, more }) => {
  const key = keyNamed(name);
  identity.give = key;
  options.key = key;
  const gateway = await start(env, more);
  const response = await gateway.chat({ model: NOVA });
  expect([response.status, await response.text()]).toMatchObject([200, expect.stringContaining("hello")]);
  expect(strict.last.headers.authorization).toContain(`Credential=${key.accessKeyId}/`);
  expect(await gateway.backend("aws")).toMatchObject({ is_healthy: true });
  await gateway.stop();
});

test("keys that end are renewed ahead, and no request waits for it", async () => {
  const [before, after] = [keyNamed("before"), keyNamed("after")];
  identity.answered.length = 0;
  identity.give = { ...before, livesMs: 3_000 };
  options.key = before;
  const gateway = await start({
    AWS_EC2_METADATA_DISABLED: "false",
    AWS_EC2_METADATA_SERVICE_ENDPOINT: identity.url,
  });
  expect((await gateway.chat({ model: NOVA })).status).toBe(200);
  expect(identity.answered).toEqual(["instance"]);
  identity.give = after;
  await waitFor("the keys are renewed", () => identity.answered.length === 2);
  options.key = after;
  await waitFor("the new keys are used", async () => (await gateway.chat({ model: NOVA })).status === 200);
  expect(strict.last.headers["x-amz-security-token"]).toBe("sekret-session-after");
  expect(identity.answered).toEqual(["instance", "instance"]);
  await gateway.stop();
});

test.each([
  [{}, "no AWS credentials: Could not load credentials from any providers"],
  [
    { profile: "missing" },
    "no AWS credentials of the profile missing: Could not resolve credentials using profile: [missing]",
  ],
  [{ profile: "broken" }, "no AWS credentials of the profile broken"],
])("without credentials (%j) the backend's health says why", async (more, words) => {
  strict.requests.length = 0;
  const gateway = await start({}, more);
  const response = await gateway.chat({ model: NOVA });
  expect([response.status, await response.text()]).toMatchObject([503, expect.not.stringContaining("sekret")]);
  await waitFor("the reason is shown", async () => JSON.stringify(await gateway.backend("aws")).includes(words));
  expect(gateway.printed.stderr).toContain(words);
  expect(strict.requests).toEqual([]);
  await gateway.stop();
});

test("credentials in the environment alone start no backend", async () => {
  const gateway = await bed.process({
    config: null,
    environment: { ...NOWHERE, ...SOURCES[0]?.env, AWS_REGION: "us-east-1", AWS_BEARER_TOKEN_BEDROCK: "sekret-bearer" },
  });
  const { data } = (await (await gateway.fetch("/v1/models")).json()) as { data: { owned_by: string }[] };
  expect(data.some(({ owned_by }) => owned_by === "amazon")).toBe(false);
  expect(gateway.printed.stderr).not.toContain("bedrock");
  await gateway.stop();
});

test("a bearer token of the environment comes before keys, unless the configuration names some", async () => {
  const key = keyNamed("work");
  Object.assign(options, { key, bearer: "sekret-bearer" });
  const env = { AWS_BEARER_TOKEN_BEDROCK: "sekret-bearer", AWS_SHARED_CREDENTIALS_FILE: credentialsFile };
  for (const [more, expected] of [
    [{}, "Bearer sekret-bearer"],
    [{ profile: "work" }, `AWS4-HMAC-SHA256 Credential=${key.accessKeyId}/`],
  ] as const) {
    const gateway = await start(env, more);
    expect((await gateway.chat({ model: NOVA })).status).toBe(200);
    expect(strict.last.headers.authorization).toStartWith(expected);
    await gateway.stop();
  }
});
