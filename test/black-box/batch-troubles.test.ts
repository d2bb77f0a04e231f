// What goes wrong around batches while they run: files, keys, time, workers; no line is lost, and the others are answered.

import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { AdminClient } from "../support/admin-client.ts";
import { batchLine, createBatch, linesOf, openaiClient, whenEnded } from "../support/batch-client.ts";
import type { FakeBackend, Responder } from "../support/fake-backend.ts";
import { startInProcess } from "../support/in-process.ts";
import { chat } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

const configOf = (backend: FakeBackend) => ({
  backends: [{ name: "engine", type: "vllm", url: backend.url, models: ["m"] }],
  health_checks: { enabled: false },
  retry: { max_attempts: 1 },
});

const body = { model: "m", messages: [{ role: "user", content: "Hello!" }] };
const linesOfInput = (count: number) =>
  Array.from({ length: count }, (_, index) => batchLine(`line-${index}`, { body }));

/** A backend that answers so many questions, and the others once it is opened. */
function gatedBackend(answered: number): { backend: FakeBackend; asked(): number; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  let asked = 0;
  let isOpen = false;
  const answer: Responder = () => (++asked <= answered || isOpen ? chat("x") : { ...chat("x"), headersAfter: promise });
  return {
    backend: bed.backend({ answer }),
    asked: () => asked,
    open() {
      isOpen = true;
      resolve();
    },
  };
}

async function whenCompleted(client: ReturnType<typeof openaiClient>, id: string, lines: number): Promise<void> {
  await waitFor(`${lines} lines are completed`, async () => {
    const { request_counts } = await client.batches.retrieve(id);
    return request_counts?.completed === lines;
  });
}

describe("the input", () => {
  test("is named with its bad line 40,000, and the other lines are asked", async () => {
    const { backend } = gatedBackend(10);
    const client = openaiClient(await bed.gateway({ config: configOf(backend) }));
    const lines = linesOfInput(40_100);
    lines[39_999] = '{"custom_id": "broken"';
    const { id } = await createBatch(client, lines);
    await whenCompleted(client, id, 10);
    expect((await client.batches.retrieve(id)).errors?.data).toEqual([
      { code: "invalid_json_line", message: "This line is not parseable as valid JSON.", param: null, line: 40_000 },
    ]);
    await client.batches.cancel(id);
    const batch = await whenEnded(client, id);
    expect(batch.request_counts).toEqual({ total: 40_100, completed: 10, failed: 40_090 });
    const errors = await linesOf(client, batch.error_file_id);
    expect(errors.filter(({ error }) => error?.line !== undefined).map(({ error }) => error?.line)).toEqual([40_000]);
  });

  test("may be deleted once its lines are known", async () => {
    const { backend, open, asked } = gatedBackend(0);
    const client = openaiClient(await bed.gateway({ config: configOf(backend) }));
    const { id, input_file_id } = await createBatch(client, linesOfInput(100));
    await waitFor("a line is asked", () => asked() > 0);
    await client.files.delete(input_file_id);
    open();
    expect((await whenEnded(client, id)).request_counts).toEqual({ total: 100, completed: 100, failed: 0 });
  });

  test("is missed where it vanished from the storage before", async () => {
    const { backend } = gatedBackend(10);
    const gateway = await bed.gateway({ config: configOf(backend) });
    const client = openaiClient(gateway);
    const file = new File([`${batchLine("a", { body })}\n`], "input.jsonl");
    const { id: input_file_id } = await client.files.create({ file, purpose: "batch" });
    for (const path of new Bun.Glob(`**/${input_file_id}*`).scanSync(join(gateway.folder, "data", "files"))) {
      rmSync(join(gateway.folder, "data", "files", path));
    }
    const asked = { input_file_id, endpoint: "/v1/chat/completions", completion_window: "24h" } as const;
    const batch = await whenEnded(client, (await client.batches.create(asked)).id);
    expect(batch.status).toBe("failed");
    expect(batch.errors?.data?.[0]?.code).toBe("invalid_input_file");
    const other = await createBatch(client, linesOfInput(1));
    expect((await whenEnded(client, other.id)).status).toBe("completed");
  });

  test.each([
    ["lines", { max_lines: 2 }, "too_many_tasks"],
    ["bytes", { max_bytes: 100 }, "file_too_large"],
  ])("has at most so many %s", async (_, batches, code) => {
    const { backend } = gatedBackend(10);
    const client = openaiClient(await bed.gateway({ config: { ...configOf(backend), batches } }));
    const batch = await whenEnded(client, (await createBatch(client, linesOfInput(3))).id);
    expect([batch.status, batch.errors?.data?.[0]?.code]).toEqual(["failed", code]);
    expect(backend.requests).toEqual([]);
  });
});

test("a batch whose window is over keeps its answers, and names the lines without one", async () => {
  const { backend } = gatedBackend(5);
  let ahead = 0;
  const clock = { now: () => performance.now(), wallTime: () => Date.now() + ahead };
  await using closing = new AsyncDisposableStack();
  const gateway = await startInProcess({ config: configOf(backend) }, clock);
  closing.defer(() => gateway.close());
  const client = openaiClient(gateway);
  const { id, expires_at, created_at } = await createBatch(client, linesOfInput(50));
  expect(expires_at).toBe(created_at + 86_400);
  await whenCompleted(client, id, 5);
  ahead = 86_400_000;
  const batch = await whenEnded(client, id);
  expect(batch).toMatchObject({ status: "expired", request_counts: { total: 50, completed: 5, failed: 45 } });
  expect(batch.expired_at).toBeGreaterThanOrEqual(expires_at as number);
  expect(await linesOf(client, batch.output_file_id)).toHaveLength(5);
  const errors = await linesOf(client, batch.error_file_id);
  expect(new Set(errors.map(({ error }) => error?.code))).toEqual(new Set(["batch_expired"]));
  expect(errors).toHaveLength(45);
});

test("a batch whose key is deleted goes on to its end, with refusals", async () => {
  const { backend, open, asked } = gatedBackend(5);
  const keys = [{ key: "sekret-administrator", id: "admin", scopes: ["admin" as const] }];
  const config = { ...configOf(backend), api_keys: { mode: "blocking" as const, keys } };
  const gateway = await bed.gateway({ config });
  const admin = new AdminClient(gateway, { Authorization: "Bearer sekret-administrator" });
  const made = await admin.send("POST", "/admin/keys", { body: { id: "maker" }, showsSecrets: true });
  const client = openaiClient(gateway, made.body.secret as string);
  const { id } = await createBatch(client, linesOfInput(50));
  await waitFor("all slots are taken", () => asked() === 5 + 16);
  await admin.ok("DELETE", "/admin/keys/maker");
  open();
  const end = { msg: `batch ${id} is completed`, completed: 5 + 16, failed: 29 };
  await waitFor("the batch is over", () => gateway.printed.logEntries.some(({ msg }) => msg === end.msg));
  expect(gateway.printed.logEntries.find(({ msg }) => msg === end.msg)).toMatchObject(end);
  const refused = gateway.printed.logEntries.filter(({ status }) => status === 401);
  expect(refused).toHaveLength(29);
});

test("lines wait for a backend that is away, and one that fails at a line is asked three times", async () => {
  let failing = 0;
  const backend = bed.backend({
    answer: ({ text }) => (text.includes("poison") && ++failing > 0 ? { status: 500, body: "{}" } : chat("x")),
  });
  const config = { ...configOf(backend), health_checks: { enabled: true, interval: "1s", timeout: "1s" } };
  const gateway = await bed.gateway({ config });
  const client = openaiClient(gateway);
  backend.stop();
  await waitFor("the backend is down", async () => {
    const { status } = await gateway.chat({ model: "m" });
    return status === 503;
  });
  const poison = { model: "m", messages: [{ role: "user", content: "poison" }] };
  const { id } = await createBatch(client, [...linesOfInput(20), batchLine("poison", { body: poison })]);
  await waitFor("lines are refused", () => {
    const refused = gateway.printed.logEntries.filter(({ status }) => status === 503);
    return refused.length > 21;
  });
  expect((await client.batches.retrieve(id)).request_counts).toEqual({ total: 21, completed: 0, failed: 0 });
  backend.start();
  const batch = await whenEnded(client, id);
  expect(batch.request_counts).toEqual({ total: 21, completed: 20, failed: 1 });
  const [failed] = await linesOf(client, batch.error_file_id);
  expect([failed?.custom_id, failed?.response?.status_code, failing]).toEqual(["poison", 500, 3]);
});

test("a gateway that stops breaks lines off, which the next one asks again", async () => {
  const { backend, open, asked } = gatedBackend(5);
  const config = { ...configOf(backend), server: { shutdown_timeout: "100ms" } };
  const gateway = await bed.gateway({ config });
  const { id } = await createBatch(openaiClient(gateway), linesOfInput(50));
  await waitFor("further lines are asked", () => asked() > 5);
  await gateway.stop();
  open();
  await gateway.restart();
  const client = openaiClient(gateway);
  const batch = await whenEnded(client, id);
  expect(batch.request_counts).toEqual({ total: 50, completed: 50, failed: 0 });
  const again = (await linesOf(client, batch.output_file_id)).filter(({ asked_again }) => asked_again);
  expect(again.length).toBeGreaterThan(0);
  expect(again.length).toBeLessThanOrEqual(16);
});

test("workers hand batches on to the process that runs them", async () => {
  const { backend, open } = gatedBackend(5);
  const gateway = await bed.process({ config: { ...configOf(backend), server: { workers: 2 } } });
  const client = openaiClient(gateway);
  const { id } = await createBatch(client, linesOfInput(50));
  await whenCompleted(client, id, 5);
  open();
  const batch = await whenEnded(client, id);
  expect(batch.request_counts).toEqual({ total: 50, completed: 50, failed: 0 });
  expect(await linesOf(client, batch.output_file_id)).toHaveLength(50);
});
