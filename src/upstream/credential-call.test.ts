// Requests to a backend with a credential: what is added, who waits, what becomes of them without it, and what is masked.

import { afterAll, afterEach, expect, test } from "bun:test";
import { FakeBackend } from "../../test/support/fake-backend.ts";
import { chat, failure } from "../../test/support/openai-answers.ts";
import { waitFor, within } from "../../test/support/wait-for.ts";
import { newCounters, toBackend } from "../backends/backend.ts";
import type { BackendEntry } from "../backends/board.ts";
import {
  type BackendCredential,
  CredentialError,
  type UnauthorizedRequest,
} from "../backends/credentials/credential.ts";
import { documentSchema } from "../config/sections/registry.ts";
import { probeBackend, probePlan } from "../health/probe.ts";
import { systemClock } from "../lib/clock.ts";
import { createDeadlines } from "../lib/deadlines.ts";
import { createSender, type OutgoingRequest } from "./send.ts";
import { createTransport } from "./transport.ts";

const { now } = systemClock;
const deadlines = createDeadlines(now);
const backend = new FakeBackend();
afterAll(() => backend.stop());
afterEach(() => {
  backend.reset();
  expect(deadlines.size).toBe(0);
});

const settings = documentSchema.parse({
  backends: [{ name: "b1", type: "openai", url: backend.url, headers: { "x-own": "1" } }],
});

function through(authorize: BackendCredential["authorize"], client = new AbortController()) {
  const transport = createTransport(async () => new Response("{}"), {
    credentials: { of: () => ({ authorize, stop() {} }) },
  });
  const target = { ...toBackend(settings.backends[0]!), hasCredential: true };
  const entry: BackendEntry = { backend: target, health: "ready", available: true, counters: newCounters() };
  const request: OutgoingRequest = {
    operation: "chat",
    model: "m",
    stream: false,
    choices: 1,
    body: new TextEncoder().encode('{"model":"m"}'),
    clientHeaders: new Headers(),
    trace: { id: "trace-1", traceparent: undefined, tracestate: undefined },
    client,
    timeouts: { connectMs: 60_000, firstByteMs: 60_000, betweenChunksMs: 60_000, requestDeadlineMs: now() + 60_000 },
  };
  const stop = new AbortController().signal;
  return {
    entry,
    send: () => within("the outcome", createSender(transport, { deadlines, now }).send(entry, request, settings)),
    probe: () =>
      probeBackend(target, probePlan(target, settings.health_checks), { transport, clock: systemClock, stop }),
  };
}

test.each([
  ["at once", (headers: Record<string, string>) => headers],
  ["later", async (headers: Record<string, string>) => headers],
])("the request that is signed is the one that goes out; the headers come %s", async (_, give) => {
  backend.answer = chat("hello");
  const signed: UnauthorizedRequest[] = [];
  const { send, probe } = through((request) => {
    signed.push(request);
    return give({ authorization: "Bearer sekret-token", "x-own": "2" });
  });
  expect(await send()).toMatchObject({ ok: true });
  const { headers, path, method } = backend.lastRequest;
  expect(headers).toMatchObject({ authorization: "Bearer sekret-token", "x-own": "1" });
  expect(signed[0]).toMatchObject({ method, url: backend.url + path, headers: { "content-type": "application/json" } });
  expect(new TextDecoder().decode(signed[0]?.body as Uint8Array)).toBe('{"model":"m"}');
  backend.probeAnswer = ({ headers }) => ({ status: headers.authorization === "Bearer sekret-token" ? 200 : 401 });
  expect(await probe()).toMatchObject({ verdict: "healthy" });
});

test("what the credential added is masked where the backend repeats it", async () => {
  backend.answer = failure(400, "the token sekret-token-1 with sekret-signature is odd");
  const { send } = through(() => ({
    authorization: "AWS4 Credential=sekret-token-1, Signature=sekret-signature",
  }));
  const outcome = await send();
  expect(outcome).toMatchObject({ ok: false, failure: { kind: "status", status: 400 } });
  expect(new TextDecoder().decode((outcome as { failure: { body: Uint8Array } }).failure.body)).toContain(
    "the token ******** with ******** is odd",
  );
});

test("without a credential nothing is sent; operators see the reason, clients see that there is none", async () => {
  const { send, probe, entry } = through(() => Promise.reject(new CredentialError("no access token: invalid_grant")));
  const message =
    "Backend 'b1' was not asked, because the gateway has no credential for it; the gateway's operator has to mend it.";
  expect(await send()).toMatchObject({ ok: false, failure: { kind: "connect", message } });
  expect(entry.counters).toMatchObject({
    credentialError: "no access token: invalid_grant",
    failedRequests: 1,
    inFlight: 0,
  });
  expect(await probe()).toMatchObject({ verdict: "failed", reason: "no access token: invalid_grant" });
  expect(backend.requests).toEqual([]);
});

test("a client that leaves while the first credential is awaited is not sent for", async () => {
  const client = new AbortController();
  const credential = Promise.withResolvers<Record<string, string>>();
  let asked = 0;
  const { send, entry } = through(() => {
    asked++;
    return credential.promise;
  }, client);
  const outcome = send();
  await waitFor("the credential is asked for", () => asked === 1);
  client.abort();
  expect(await outcome).toMatchObject({ ok: false, failure: { kind: "aborted" } });
  credential.resolve({});
  await credential.promise;
  expect(entry.counters.inFlight).toBe(0);
  expect(backend.requests).toEqual([]);
});
