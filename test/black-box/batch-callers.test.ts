// Lines are asked as the caller who created the batch: what a token, a key and a budget allow holds for each of them.

import { expect, test } from "bun:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { batchLine, createBatch, linesOf, openaiClient, whenEnded } from "../support/batch-client.ts";
import { chat } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const ISSUER = "https://login.example.com";

const lineFor = (id: string, model = "m") =>
  batchLine(id, { body: { model, messages: [{ role: "user", content: "Hello!" }] } });
const linesFor = (count: number) => Array.from({ length: count }, (_, index) => lineFor(`line-${index}`));

/** The client's promises are none of the runtime's. */
const statusOf = (asked: PromiseLike<unknown>) =>
  asked.then(
    () => 200,
    ({ status }: { status: number }) => status,
  );

const common = { health_checks: { enabled: false }, retry: { max_attempts: 1 } };

test("a token's models hold for the lines, also when the token has ended", async () => {
  const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid: "a", alg: "ES256" };
  const keys = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => Response.json({ keys: [jwk] }) });
  await using closing = new AsyncDisposableStack();
  closing.defer(() => keys.stop(true));
  const { promise, resolve } = Promise.withResolvers<void>();
  const backend = bed.backend({ answer: { ...chat("x"), headersAfter: promise } });
  const issuer = { issuer: ISSUER, audience: "signalbox", jwks_url: `${keys.url}jwks`, clock_skew: "0s" };
  const gateway = await bed.gateway({
    config: {
      ...common,
      backends: [{ name: "a", type: "vllm", url: backend.url, models: ["m", "other"] }],
      api_keys: { mode: "blocking", jwt: [{ ...issuer, claims: { models: "models" } }] },
    },
  });
  const tokenOf = (seconds: number) =>
    new SignJWT({ models: ["m"] })
      .setProtectedHeader({ alg: "ES256", kid: "a" })
      .setIssuer(ISSUER)
      .setAudience("signalbox")
      .setSubject("alice")
      .setExpirationTime(Math.floor(Date.now() / 1000) + seconds)
      .sign(privateKey);
  const short = await tokenOf(3);
  const { id } = await createBatch(openaiClient(gateway, short), [...linesFor(30), lineFor("forbidden", "other")]);
  await waitFor("the token has ended", async () => {
    const { status } = await gateway.fetch("/v1/models", { headers: { authorization: `Bearer ${short}` } });
    return status === 401;
  });
  resolve();
  const client = openaiClient(gateway, await tokenOf(600));
  const batch = await whenEnded(client, id);
  expect(batch.request_counts).toEqual({ total: 31, completed: 30, failed: 1 });
  const [refused] = await linesOf(client, batch.error_file_id);
  expect([refused?.custom_id, refused?.response?.status_code]).toEqual(["forbidden", 403]);
});

test("a budget that is spent makes lines wait, and none fail", async () => {
  const backend = bed.backend({ answer: chat("x") });
  const gateway = await bed.gateway({
    config: {
      ...common,
      backends: [{ name: "a", type: "vllm", url: backend.url, models: ["m"] }],
      budgets: { rules: [{ id: "few", limit: { requests: 10 }, window: "1s", strict: true }] },
    },
  });
  const client = openaiClient(gateway);
  const { id } = await createBatch(client, linesFor(25));
  const batch = await whenEnded(client, id);
  expect(batch.request_counts).toEqual({ total: 25, completed: 25, failed: 0 });
  expect(batch.usage?.total_tokens).toBe(25 * 5);
  expect(gateway.printed.logEntries.some(({ status }) => status === 429)).toBe(true);
});

test("each key has its own batches, as many under way as batches.max_open allows", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const backend = bed.backend({ answer: { ...chat("x"), headersAfter: promise } });
  const keys = ["first", "second"].map((id) => ({ key: `sekret-${id}`, id }));
  const gateway = await bed.gateway({
    config: {
      ...common,
      backends: [{ name: "a", type: "vllm", url: backend.url, models: ["m"] }],
      api_keys: { mode: "blocking", keys },
      batches: { max_open: 2 },
    },
  });
  const [first, second] = ["first", "second"].map((id) => openaiClient(gateway, `sekret-${id}`));
  if (first === undefined || second === undefined) throw new Error("two clients");
  const begun = [await createBatch(first, linesFor(1)), await createBatch(first, linesFor(1))];
  expect(await statusOf(createBatch(first, linesFor(1)))).toBe(429);
  const other = await createBatch(second, linesFor(1));
  expect(await statusOf(first.batches.cancel(other.id))).toBe(404);
  expect(await statusOf(second.batches.retrieve(begun[0]?.id as string))).toBe(404);
  expect((await second.batches.list()).data.map(({ id }) => id)).toEqual([other.id]);
  const open = await (await gateway.fetch("/metrics", { headers: { authorization: "Bearer sekret-first" } })).text();
  expect(open).toContain("signalbox_batches_open 3");
  resolve();
  for (const { id } of begun) expect((await whenEnded(first, id)).status).toBe("completed");
  expect(await statusOf(first.batches.cancel(begun[0]?.id as string))).toBe(409);
  const metrics = await (await gateway.fetch("/metrics")).text();
  expect(metrics).toMatch(
    /signalbox_batch_lines_total\{endpoint="\/v1\/chat\/completions",result="completed"\} [23]\n/,
  );
});
