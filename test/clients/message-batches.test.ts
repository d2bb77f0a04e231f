// The official Anthropic SDK runs batches end to end, in front of a strict backend of each format.

import { afterEach, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import type { MessageBatch, MessageBatchIndividualResponse } from "@anthropic-ai/sdk/resources/messages";
import { answer, failure, text } from "../support/strict/script.ts";
import { createTestBed } from "../support/test-bed.ts";
import { FORMATS, MODEL_OF, ThreeBackends } from "../support/three-backends.ts";
import { waitFor } from "../support/wait-for.ts";

const three = new ThreeBackends(createTestBed());
const clientAt = (prefix: string) =>
  new Anthropic({ apiKey: "not-checked-here", baseURL: `${three.gateway.url}${prefix}`, maxRetries: 0 });

afterEach(() => {
  expect(three.takeRefusals()).toEqual([]);
});

async function whenEnded(client: Anthropic, id: string): Promise<MessageBatch> {
  let batch: MessageBatch | undefined;
  await waitFor("the batch has ended", async () => {
    batch = await client.messages.batches.retrieve(id);
    return batch.processing_status === "ended";
  });
  return batch as MessageBatch;
}

async function resultsOf(
  client: Anthropic,
  id: string,
): Promise<Record<string, MessageBatchIndividualResponse["result"]>> {
  const results: Record<string, MessageBatchIndividualResponse["result"]> = {};
  for await (const { custom_id, result } of await client.messages.batches.results(id)) {
    expect(results[custom_id]).toBeUndefined();
    results[custom_id] = result;
  }
  return results;
}

describe.each(["/anthropic", ""])("below '%s'", (prefix) => {
  test.each(FORMATS)("a %s backend: created, polled, results streamed, deleted", async (format) => {
    const client = clientAt(prefix);
    const answers = Array.from({ length: 3 }, (_, index) => ({
      ...answer(text(`answer ${index}`)),
      usage: { input: 11, output: 7 },
    }));
    const backend = three.script(format, ...answers);
    const params = { model: MODEL_OF[format], max_tokens: 64, messages: [{ role: "user" as const, content: "hi" }] };
    const begun = await client.messages.batches.create({
      requests: [
        ...answers.map((_, index) => ({ custom_id: `line-${index}`, params })),
        { custom_id: "unserved", params: { ...params, model: "nothing-serves-this" } },
        { custom_id: "faulty", params: { ...params, messages: "hi" as never } },
      ],
    });
    expect(begun.id).toMatch(/^msgbatch_[0-9A-Za-z]{24}$/);
    expect(begun).toMatchObject({
      type: "message_batch",
      processing_status: "in_progress",
      request_counts: { processing: 5, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
      results_url: null,
      ended_at: null,
      archived_at: null,
      cancel_initiated_at: null,
    });
    expect(Date.parse(begun.expires_at) - Date.parse(begun.created_at)).toBe(86_400_000);

    const ended = await whenEnded(client, begun.id);
    expect(ended.request_counts).toEqual({ processing: 0, succeeded: 3, errored: 2, canceled: 0, expired: 0 });
    expect(ended.results_url).toBe(`${three.gateway.url}${prefix}/v1/messages/batches/${begun.id}/results`);
    expect(Date.parse(ended.ended_at as string)).toBeGreaterThanOrEqual(Date.parse(begun.created_at));

    const results = await resultsOf(client, begun.id);
    expect(Object.keys(results).sort()).toEqual(["faulty", "line-0", "line-1", "line-2", "unserved"]);
    const texts = [0, 1, 2].map((index) => {
      const result = results[`line-${index}`];
      if (result?.type !== "succeeded") throw new Error(JSON.stringify(result));
      expect(result.message).toMatchObject({ type: "message", usage: { input_tokens: 11, output_tokens: 7 } });
      return (result.message.content[0] as { text: string }).text;
    });
    expect(texts.sort()).toEqual(["answer 0", "answer 1", "answer 2"]);
    expect(results.unserved).toMatchObject({
      type: "errored",
      error: { type: "error", error: { type: "not_found_error" } },
    });
    expect(results.faulty).toMatchObject({ type: "errored", error: { error: { type: "invalid_request_error" } } });
    expect(backend.requests.filter(({ method }) => method === "POST")).toHaveLength(3);

    expect(await client.messages.batches.delete(begun.id)).toEqual({ id: begun.id, type: "message_batch_deleted" });
    const gone = await client.messages.batches.retrieve(begun.id).catch((error) => error);
    expect(gone).toBeInstanceOf(Anthropic.NotFoundError);
  });
});

test("the version and the betas of the creator hold for each request", async () => {
  const client = clientAt("/anthropic");
  const backend = three.script("messages", answer(text("hello")));
  const params = { model: MODEL_OF.messages, max_tokens: 64, messages: [{ role: "user" as const, content: "hi" }] };
  const { id } = await client.messages.batches.create(
    { requests: [{ custom_id: "a", params }] },
    { headers: { "anthropic-version": "2023-06-01", "anthropic-beta": "one-2026-01-01,two-2026-01-01" } },
  );
  await whenEnded(client, id);
  const asked = backend.requests.find(({ method }) => method === "POST");
  expect(asked?.headers).toMatchObject({
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "one-2026-01-01,two-2026-01-01",
  });
});

test("pages of the list, in both directions", async () => {
  const client = clientAt("/anthropic");
  const params = { model: "nothing-serves-this", max_tokens: 1, messages: [] };
  const ids: string[] = [];
  for (let index = 0; index < 5; index++) {
    ids.unshift((await client.messages.batches.create({ requests: [{ custom_id: "a", params }] })).id);
  }
  const listed: string[] = [];
  for await (const { id } of client.messages.batches.list({ limit: 2 })) listed.push(id);
  expect(listed.slice(0, 5)).toEqual(ids);
  const before = await client.messages.batches.list({ limit: 2, before_id: ids[3] as string });
  expect(before.data.map(({ id }) => id)).toEqual([ids[1] as string, ids[2] as string]);
  expect(before.has_more).toBe(true);
  const first = await client.messages.batches.list({ before_id: ids[1] as string });
  expect([first.data.map(({ id }) => id), first.has_more]).toEqual([[ids[0] as string], false]);
});

test("a backend's refusal of one request is its result", async () => {
  const client = clientAt("/anthropic");
  three.script("messages", failure(400, "this prompt is not possible"));
  const params = { model: MODEL_OF.messages, max_tokens: 64, messages: [{ role: "user" as const, content: "hi" }] };
  const { id } = await client.messages.batches.create({ requests: [{ custom_id: "a", params }] });
  await whenEnded(client, id);
  expect(await resultsOf(client, id)).toMatchObject({
    a: { type: "errored", error: { type: "error", error: { message: "this prompt is not possible" } } },
  });
});

test("the beta client runs them too", async () => {
  const client = clientAt("/anthropic");
  three.script("chat", answer(text("hello")));
  const params = { model: MODEL_OF.chat, max_tokens: 64, messages: [{ role: "user" as const, content: "hi" }] };
  const { id } = await client.beta.messages.batches.create({ requests: [{ custom_id: "a", params }] });
  await waitFor("the batch has ended", async () => {
    return (await client.beta.messages.batches.retrieve(id)).processing_status === "ended";
  });
  for await (const { custom_id, result } of await client.beta.messages.batches.results(id)) {
    expect([custom_id, result.type]).toEqual(["a", "succeeded"]);
  }
  expect((await client.beta.messages.batches.delete(id)).type).toBe("message_batch_deleted");
});
