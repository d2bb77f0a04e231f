// Refusals of backends: what they quote of the secrets that they were sent is masked, all else stays byte by byte.

import { expect, test } from "bun:test";
import { toBackend } from "../backends/backend.ts";
import { documentSchema } from "../config/sections/registry.ts";
import type { StatusFailure } from "./failure.ts";
import { withoutSecrets } from "./own-secrets.ts";

function backendOf(more: object) {
  const [settings] = documentSchema.parse({
    backends: [{ name: "a", type: "vllm", url: "http://user:sekret%2Fpassword@127.0.0.1:1", ...more }],
  }).backends;
  return toBackend(settings as NonNullable<typeof settings>);
}

const refusal = (body: string): StatusFailure => ({
  kind: "status",
  status: 401,
  body: new TextEncoder().encode(body),
  retryAfterMs: undefined,
  headers: { "x-limit": body },
});

const BACKEND = backendOf({ api_key: 'sekret"quoted', headers: { "X-Auth": "Token sekret-token", "X-Short": "1" } });

test.each([
  ['{"message": "bad key sekret\\"quoted"}', '{"message": "bad key ********"}'],
  ['bad key sekret"quoted', "bad key ********"],
  ["sekret-token is 1 of them", "******** is 1 of them"],
  ["user sekret/password or sekret%2Fpassword", "user ******** or ********"],
])("%s", (body, expected) => {
  const { body: bytes, headers } = withoutSecrets(refusal(body), BACKEND) as StatusFailure;
  expect(new TextDecoder().decode(bytes)).toBe(expected);
  expect(headers).toEqual({ "x-limit": expected });
});

test("a refusal that quotes nothing keeps its bytes, also where they are no text", () => {
  const failure = refusal("\u{fffd} no such model");
  failure.body = new Uint8Array([0xff, 0xfe, 0x00]);
  expect((withoutSecrets(failure, BACKEND) as StatusFailure).body).toBe(failure.body);
  expect(withoutSecrets(failure, backendOf({ url: "http://127.0.0.1:1" }))).toBe(failure);
});

test("a message of the gateway's own that names what was answered", () => {
  const failure = { kind: "invalid-response" as const, message: "Backend 'a' answered sekret-token." };
  expect(withoutSecrets(failure, BACKEND)).toEqual({ ...failure, message: "Backend 'a' answered ********." });
});
