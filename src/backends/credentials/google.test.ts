// Google's token endpoint and metadata server as they should not be: what operators read, and what is not followed.

import { afterAll, expect, test } from "bun:test";
import { startGoogleIssuer, startGoogleMetadata } from "../../../test/support/token-issuers.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../logging/logger.ts";
import { googleCredential } from "./google.ts";

const stops: (() => void)[] = [];
afterAll(() => {
  for (const stop of stops) stop();
});

async function reasonOf(given: string | undefined, env: Record<string, string> = {}): Promise<string> {
  const tools = { backend: "b", env, resolve: (path: string) => path, clock: systemClock, log: silentLogger() };
  const credential = googleCredential.make({ given }, tools);
  stops.push(() => credential.stop());
  try {
    return JSON.stringify(await credential.authorize({ method: "POST", url: "", headers: {} }));
  } catch (error) {
    return (error as Error).message;
  }
}

const ENDPOINT = "no access token: Google's token endpoint";

test.each<[string, { status: number; body: unknown }, string]>([
  ["an endless answer", { status: 200, body: { x: "a".repeat(300_000) } }, `${ENDPOINT} could not be asked`],
  ["no token", { status: 200, body: {} }, `${ENDPOINT} did not give one, or not until when it holds`],
  ["no JSON", { status: 502, body: "sekret words" }, `${ENDPOINT} answered HTTP 502`],
  ["a word that is no code", { status: 400, body: { error: "sekret words" } }, `${ENDPOINT} answered HTTP 400`],
  [
    "a status in Google's words",
    { status: 403, body: { error: { status: "PERMISSION_DENIED" } } },
    `${ENDPOINT} answered HTTP 403 (PERMISSION_DENIED)`,
  ],
])("%s", async (_, failure, expected) => {
  const issuer = startGoogleIssuer();
  stops.push(issuer.stop);
  issuer.failure = failure;
  expect(await reasonOf(JSON.stringify(issuer.serviceAccount))).toBe(expected);
});

test("an endpoint that is away, or sends the secret elsewhere", async () => {
  const issuer = startGoogleIssuer();
  issuer.stop();
  expect(await reasonOf(JSON.stringify(issuer.serviceAccount))).toStartWith(`${ENDPOINT} could not be asked`);
  const other = startGoogleIssuer();
  const elsewhere = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => Response.redirect(`${other.url}/token`, 307),
  });
  stops.push(other.stop, () => void elsewhere.stop(true));
  const moved = { ...other.serviceAccount, token_uri: `http://127.0.0.1:${elsewhere.port}/token` };
  expect(await reasonOf(JSON.stringify(moved))).toStartWith(`${ENDPOINT} could not be asked`);
  expect(other.asked).toEqual([]);
});

test.each([
  ["{}", 'credentials: this is no JSON of Google credentials, which has a "type"'],
  ["{half", 'credentials: this is no JSON of Google credentials, which has a "type"'],
  ["/nowhere/key.json", "the file in credentials cannot be read"],
])("credentials that are none: %s", async (given, expected) => {
  expect(await reasonOf(given)).toBe(expected);
});

test("a machine without credentials, and a server that only stands where the metadata server should", async () => {
  expect(await reasonOf(undefined, { GCE_METADATA_HOST: "127.0.0.1:1" })).toStartWith(
    "no Google credentials: name a key file",
  );
  const plain = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.json({ access_token: "sekret" }) });
  stops.push(() => void plain.stop(true));
  const metadata = startGoogleMetadata();
  stops.push(metadata.stop);
  expect(await reasonOf(undefined, { GCE_METADATA_HOST: `127.0.0.1:${plain.port}` })).toBe(
    "no access token: the metadata server did not answer as Google's does",
  );
  expect(await reasonOf(undefined, { GCE_METADATA_HOST: new URL(metadata.url).host })).toContain("sekret-token-1");
  const named = { GOOGLE_APPLICATION_CREDENTIALS: "/nowhere/key.json" };
  expect(await reasonOf(undefined, named)).toBe("the file in GOOGLE_APPLICATION_CREDENTIALS cannot be read");
});
