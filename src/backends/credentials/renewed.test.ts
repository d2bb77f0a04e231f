// Credentials that expire: who waits, when they are renewed, and what is said when none can be got.

import { afterEach, expect, test } from "bun:test";
import { waitFor } from "../../../test/support/wait-for.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../logging/logger.ts";
import { type BackendCredential, CredentialError } from "./credential.ts";
import { createRenewed, type Grant } from "./renewed.ts";

const REQUEST = { method: "POST", url: "http://127.0.0.1/", headers: {} };

const made: BackendCredential[] = [];
afterEach(() => {
  for (const credential of made.splice(0)) credential.stop();
});

function renewed(get: (signal: AbortSignal) => Promise<Grant>, clock = systemClock) {
  const lines: string[] = [];
  const line = (level: string) => (_: unknown, text?: string) => void lines.push(`${level} ${text}`);
  const log = { info: line("info"), warn: line("warn") } as never;
  const credential = createRenewed(get, { backend: "b", clock, log });
  made.push(credential);
  return { credential, lines, authorize: async () => await credential.authorize(REQUEST) };
}

const lasting = (token: string, forMs: number): Grant => ({
  headers: { authorization: `Bearer ${token}` },
  expiresAtMs: Date.now() + forMs,
});

test("only requests before the first token wait, and they share one question", async () => {
  const first = Promise.withResolvers<Grant>();
  let asked = 0;
  const { credential, authorize } = renewed(() => {
    asked++;
    return first.promise;
  });
  const waiting = [authorize(), authorize()];
  first.resolve(lasting("one", 60_000));
  expect(await Promise.all(waiting)).toEqual([{ authorization: "Bearer one" }, { authorization: "Bearer one" }]);
  expect(asked).toBe(1);
  expect(credential.authorize(REQUEST)).toEqual({ authorization: "Bearer one" });
});

test("a token is renewed by a timer before it expires, and stays in use while its renewal is under way", async () => {
  const second = Promise.withResolvers<Grant>();
  let asked = 0;
  // The wall time stands still: on a busy machine the first token would expire between the timer and what is checked.
  const { credential, authorize } = renewed(
    async () => (++asked === 1 ? { headers: { authorization: "Bearer one" }, expiresAtMs: 1_100 } : second.promise),
    { ...systemClock, wallTime: () => 0 },
  );
  await authorize();
  await waitFor("the timer asks again", () => asked === 2);
  expect(credential.authorize(REQUEST)).toEqual({ authorization: "Bearer one" });
  second.resolve(lasting("two", 60_000));
  await waitFor("the new token is in use", async () => (await authorize()).authorization === "Bearer two");
});

test("without a token each request fails at once with the reason, which is logged once, until one is got", async () => {
  let isThere = false;
  let asked = 0;
  const { authorize, lines } = renewed(async () => {
    asked++;
    if (isThere) return lasting("one", 60_000);
    throw new CredentialError("the token endpoint answered HTTP 400 (invalid_grant)");
  });
  await expect(authorize()).rejects.toThrow("invalid_grant");
  await waitFor("it is tried again", () => asked === 2);
  await expect(authorize()).rejects.toBeInstanceOf(CredentialError);
  isThere = true;
  await waitFor("there is one", async () => await authorize().catch(() => false));
  expect(lines).toEqual([
    "warn no new credential for backend b: the token endpoint answered HTTP 400 (invalid_grant)",
    "info backend b has a credential again",
  ]);
});

test("an error that is none of ours is not shown, and a token that has expired is no token", async () => {
  const failing = renewed(async () => {
    throw new Error("sekret-in-a-message");
  });
  await expect(failing.authorize()).rejects.toThrow("the access token could not be got");
  expect(failing.lines.join()).not.toContain("sekret");
  await expect(renewed(async () => lasting("old", -1)).authorize()).rejects.toThrow("clock of this machine");
});

test("a token that the backend refuses is renewed, unless it is a new one", async () => {
  let nowMs = 0;
  let asked = 0;
  const clock = { now: () => nowMs, wallTime: () => Date.now() };
  const credential = createRenewed(async () => lasting(`token-${++asked}`, 3_600_000), {
    ...{ backend: "b", clock },
    log: silentLogger(),
  });
  made.push(credential);
  await credential.authorize(REQUEST);
  credential.refused?.();
  expect(asked).toBe(1);
  nowMs = 60_000;
  credential.refused?.();
  credential.refused?.();
  expect(asked).toBe(2);
  await waitFor("the new token is in use", async () => {
    return (await credential.authorize(REQUEST)).authorization === "Bearer token-2";
  });
  credential.refused?.();
  expect(asked).toBe(2);
});

test("stop ends the question under way, and those that wait for it", async () => {
  const { credential, authorize } = renewed(
    (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  );
  const waiting = authorize();
  credential.stop();
  await expect(waiting).rejects.toBeInstanceOf(CredentialError);
});
