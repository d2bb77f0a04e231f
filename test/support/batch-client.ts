// Batches as tests use them: inputs, the official client, and what became of each line.

import OpenAI, { toFile } from "openai";
import type { Batch } from "openai/resources/batches";
import type { Gateway } from "./gateway.ts";
import { waitFor } from "./wait-for.ts";

const ENDED = ["completed", "failed", "expired", "cancelled"];

export interface ResultLine {
  id: string;
  custom_id: string | null;
  response: { status_code: number; request_id: string; body: Record<string, unknown> } | null;
  error: { code: string; message: string; line?: number } | null;
  asked_again?: true;
}

export function openaiClient(gateway: Gateway, apiKey = "unused"): OpenAI {
  return new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 });
}

export function batchLine(customId: string, change: object = {}): string {
  const body = { model: "demo", messages: [{ role: "user", content: "Hello!" }] };
  return JSON.stringify({ custom_id: customId, method: "POST", url: "/v1/chat/completions", body, ...change });
}

export async function createBatch(
  client: OpenAI,
  lines: readonly string[],
  endpoint: Batch["endpoint"] = "/v1/chat/completions",
): Promise<Batch> {
  const file = await toFile(Buffer.from(lines.map((line) => `${line}\n`).join("")), "input.jsonl");
  const { id } = await client.files.create({ file, purpose: "batch" });
  return await client.batches.create({
    input_file_id: id,
    endpoint: endpoint as OpenAI.BatchCreateParams["endpoint"],
    completion_window: "24h",
  });
}

/** @param limitMs - for all of it */
export async function whenEnded(client: OpenAI, id: string, limitMs = 50_000): Promise<Batch> {
  let batch: Batch | undefined;
  await waitFor(
    "the batch is over",
    async () => {
      batch = await client.batches.retrieve(id);
      return ENDED.includes(batch.status);
    },
    { timeoutMs: limitMs, explain: () => JSON.stringify(batch) },
  );
  return batch as Batch;
}

export async function linesOf(client: OpenAI, fileId: string | null | undefined): Promise<ResultLine[]> {
  if (fileId === undefined || fileId === null) return [];
  const text = await (await client.files.content(fileId)).text();
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as ResultLine);
}
