// Batches end to end through OpenAI's own client: what becomes of each line, good and bad, and of the batch.

import { beforeAll, describe, expect, test } from "bun:test";
import { batchLine, createBatch, linesOf, openaiClient, whenEnded } from "../support/batch-client.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();
let gateway: Gateway;
const client = () => openaiClient(gateway);

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      backends: [
        { name: "demo", type: "demo" },
        { name: "engine", type: "vllm", url: backend.url, models: ["engine"] },
      ],
      health_checks: { enabled: false },
      retry: { max_attempts: 1 },
    },
  });
});

const question = (model: string) => ({ model, messages: [{ role: "user", content: "Hello!" }] });

describe("a batch", () => {
  test("is run end to end", async () => {
    const ids = Array.from({ length: 40 }, (_, index) => `line-${index}`);
    const begun = await createBatch(
      client(),
      ids.map((id) => batchLine(id)),
    );
    expect(begun).toMatchObject({ object: "batch", status: "validating", completion_window: "24h" });
    const batch = await whenEnded(client(), begun.id);
    expect(batch).toMatchObject({
      status: "completed",
      model: "demo",
      errors: null,
      error_file_id: null,
      request_counts: { total: 40, completed: 40, failed: 0 },
    });
    expect(batch.usage?.input_tokens).toBeGreaterThan(0);
    for (const at of [batch.in_progress_at, batch.finalizing_at, batch.completed_at]) {
      expect(at).toBeGreaterThanOrEqual(batch.created_at);
    }
    const lines = await linesOf(client(), batch.output_file_id);
    expect(lines.map((line) => line.custom_id).sort()).toEqual(ids.toSorted());
    for (const line of lines) {
      expect(line).toMatchObject({ error: null, response: { status_code: 200, body: { object: "chat.completion" } } });
      expect(line.id).toMatch(/^batch_req_/);
      expect(line.asked_again).toBeUndefined();
    }
    const { filename, purpose } = await client().files.retrieve(batch.output_file_id as string);
    expect([filename, purpose]).toEqual([`${batch.id}_output.jsonl`, "batch_output"]);
    const { data } = await client().batches.list({ limit: 1 });
    expect(data.map(({ id }) => id)).toEqual([batch.id]);
  });

  test.each([
    ["/v1/embeddings", { model: "demo", input: "Hello!" }, "list"],
    ["/v1/completions", { model: "demo", prompt: "Once" }, "text_completion"],
    ["/v1/responses", { model: "demo", input: "Hello!" }, "response"],
  ] as const)("asks %s", async (url, body, object) => {
    const { id } = await createBatch(client(), [batchLine("a", { url, body })], url);
    const { output_file_id } = await whenEnded(client(), id);
    const [line] = await linesOf(client(), output_file_id);
    expect(line?.response).toMatchObject({ status_code: 200, body: { object } });
  });

  test("names bad lines, and runs the others", async () => {
    const lines = [
      batchLine("good"),
      "not JSON",
      "",
      batchLine("good"),
      batchLine("other-endpoint", { url: "/v1/embeddings" }),
      batchLine("", {}),
      batchLine("streamed", { body: { ...question("demo"), stream: true } }),
      batchLine("without-model", { body: { messages: [] } }),
      batchLine("got", { method: "GET" }),
      batchLine("without-body", { body: null }),
      batchLine("last"),
    ];
    const { id } = await createBatch(client(), lines);
    const batch = await whenEnded(client(), id);
    expect(batch.status).toBe("completed");
    expect(batch.request_counts).toEqual({ total: 10, completed: 2, failed: 8 });
    const faults = batch.errors?.data?.map(({ code, param, line }) => [line, code, param]);
    expect(faults).toEqual([
      [2, "invalid_json_line", null],
      [4, "duplicate_custom_id", "custom_id"],
      [5, "url_mismatch", "url"],
      [6, "missing_required_parameter", "custom_id"],
      [7, "invalid_value", "body.stream"],
      [8, "missing_required_parameter", "body.model"],
      [9, "missing_required_parameter", "method"],
      [10, "missing_required_parameter", "body"],
    ]);
    const done = await linesOf(client(), batch.output_file_id);
    expect(done.map((line) => line.custom_id).sort()).toEqual(["good", "last"]);
    const errors = await linesOf(client(), batch.error_file_id);
    expect(errors.map(({ error }) => error?.line)).toEqual([2, 4, 5, 6, 7, 8, 9, 10]);
  });

  test("keeps refusals of single lines as their results", async () => {
    const { id } = await createBatch(client(), [
      batchLine("unserved", { body: question("nobody-serves-this") }),
      batchLine("wrong", { body: { model: "demo", messages: "Hello!" } }),
      batchLine("good"),
    ]);
    const batch = await whenEnded(client(), id);
    expect(batch).toMatchObject({ status: "completed", request_counts: { total: 3, completed: 1, failed: 2 } });
    const errors = await linesOf(client(), batch.error_file_id);
    const byId = Object.fromEntries(errors.map((line) => [line.custom_id, line.response]));
    expect(byId.unserved).toMatchObject({ status_code: 404, body: { error: { code: "model_not_found" } } });
    expect(byId.wrong).toMatchObject({ status_code: 400 });
  });

  test.each([
    ["is empty", [], "empty_file"],
    ["has no good line", ["x", "y"], "invalid_json_line"],
    ["is for another endpoint", [batchLine("a", { url: "/v1/embeddings" })], "url_mismatch"],
  ])("fails where its file %s", async (_, lines, code) => {
    const { id } = await createBatch(client(), lines.length === 0 ? ["", ""] : lines);
    const batch = await whenEnded(client(), id);
    expect(batch.status).toBe("failed");
    expect(batch.failed_at).toBeGreaterThan(0);
    expect(batch.errors?.data?.[0]?.code).toBe(code);
  });

  test("waits where a backend refuses a line for now", async () => {
    let asked = 0;
    backend.answer = () => (++asked === 1 ? { status: 429, headers: { "Retry-After": "1" }, body: "{}" } : chat("x"));
    const { id } = await createBatch(client(), [batchLine("a", { body: question("engine") })]);
    const batch = await whenEnded(client(), id);
    expect(batch.request_counts).toEqual({ total: 1, completed: 1, failed: 0 });
    expect(asked).toBe(2);
  });

  test("is cancelled while its lines are under way, and keeps the results that it has", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let asked = 0;
    backend.answer = () => (++asked <= 5 ? chat("x") : { headersAfter: promise });
    const lines = Array.from({ length: 200 }, (_, index) => batchLine(`line-${index}`, { body: question("engine") }));
    const { id } = await createBatch(client(), lines);
    await waitFor(
      "five lines are done",
      async () => (await client().batches.retrieve(id)).request_counts?.completed === 5,
    );
    expect((await client().batches.cancel(id)).status).toBe("cancelling");
    const batch = await whenEnded(client(), id);
    resolve(); // no line has waited for its answer
    expect(batch).toMatchObject({ status: "cancelled", request_counts: { total: 200, completed: 5, failed: 195 } });
    expect(batch.cancelled_at).toBeGreaterThanOrEqual(batch.cancelling_at as number);
    expect(await linesOf(client(), batch.output_file_id)).toHaveLength(5);
    const errors = await linesOf(client(), batch.error_file_id);
    expect(errors).toHaveLength(195);
    expect(errors[0]?.error?.code).toBe("batch_cancelled");
    expect((await client().batches.cancel(id)).status).toBe("cancelled");
  });
});
