// POST /v1/embeddings on a gemini backend: the client speaks OpenAI's format, the backend gets batches of contents.

import { expect, test } from "bun:test";
import type { Answer } from "../support/fake-backend.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

interface Batch {
  requests: { model: string; content: { parts: { text?: string }[] }; outputDimensionality?: number }[];
}

function embedder(): ReturnType<typeof bed.backend> {
  const backend = bed.backend();
  backend.answer = (request): Answer => {
    const { requests } = JSON.parse(request.text) as Batch;
    if (requests.length > 100) return { status: 400, headers: {}, body: '{"error":{"code":400,"message":"too many"}}' };
    const embeddings = requests.map(({ content }) => ({ values: [Number(content.parts[0]?.text ?? 0), 0.5] }));
    return {
      status: 200,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ embeddings, usageMetadata: { promptTokenCount: requests.length } }),
    };
  };
  return backend;
}

const start = (url: string) =>
  startGateway({
    config: {
      backends: [{ name: "g", type: "gemini", url, api_key: "gemini-sekret", models: ["gemini-embedding-001"] }],
    },
  });

test("one text is one vector, with the key in the vendor's header", async () => {
  const backend = embedder();
  await using gateway = await start(backend.url);
  const response = await gateway.post("/v1/embeddings", { model: "gemini-embedding-001", input: "7" });
  expect(response.status).toBe(200);
  expect(await response.json()).toEqual({
    object: "list",
    data: [{ object: "embedding", index: 0, embedding: [7, 0.5] }],
    model: "gemini-embedding-001",
    usage: { prompt_tokens: 1, total_tokens: 1 },
  });
  expect(backend.lastRequest.path).toBe("/v1beta/models/gemini-embedding-001:batchEmbedContents");
  expect(backend.lastRequest.headers["x-goog-api-key"]).toBe("gemini-sekret");
});

test("more than a hundred inputs are asked for in slices and answered as one list, in order", async () => {
  const backend = embedder();
  await using gateway = await start(backend.url);
  const input = Array.from({ length: 250 }, (_, index) => String(index));
  const response = await gateway.post("/v1/embeddings", { model: "gemini-embedding-001", input });
  const { data, usage } = (await response.json()) as {
    data: { index: number; embedding: number[] }[];
    usage: { prompt_tokens: number };
  };
  expect(data.map(({ index, embedding }) => [index, embedding[0]])).toEqual(input.map((_, index) => [index, index]));
  expect(usage.prompt_tokens).toBe(250);
  expect(backend.requests).toHaveLength(3);
});

test("a picture for a model of texts is a clear 400", async () => {
  const backend = embedder();
  await using gateway = await start(backend.url);
  const response = await gateway.post("/v1/embeddings", {
    model: "gemini-embedding-001",
    input: [[{ type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } }]],
  });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { type: "invalid_request_error" } });
  expect(backend.requests).toHaveLength(0);
});
