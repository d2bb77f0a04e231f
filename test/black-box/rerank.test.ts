// POST /v1/rerank and /embed_sparse: one shape for clients, whatever service stands behind.

import { describe, expect, test } from "bun:test";
import type { Answer, FakeBackend } from "../support/fake-backend.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

const json = (value: unknown, status = 200) => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(value),
});

/** Answers requests to one path; others fail as everywhere. */
function answerAt(backend: FakeBackend, path: string, answer: () => Answer): void {
  const others = backend.answer;
  backend.answer = (request) =>
    request.path === path ? answer() : typeof others === "function" ? others(request) : others;
}

const QUESTION = {
  model: "m",
  query: "q",
  documents: ["one", { text: "two" }, "three"],
  top_n: 2,
  return_documents: true,
};

describe("rerank", () => {
  test("a service of the usual form: sorted, cut, with the documents, on both paths", async () => {
    const backend = bed.backend({ models: ["m"] });
    answerAt(backend, "/v1/rerank", () =>
      json({
        id: "r1",
        model: "other",
        results: [
          { index: 0, relevance_score: -4.5 },
          { index: 2, relevance_score: 1 },
          { index: 1, relevance_score: 7.25 },
        ],
        usage: { total_tokens: 12, prompt_tokens: 12 },
      }),
    );
    await using gateway = await startGateway({ config: { backends: [{ name: "b", type: "vllm", url: backend.url }] } });
    for (const path of ["/v1/rerank", "/rerank"]) {
      const response = await gateway.post(path, QUESTION);
      expect(response.status).toBe(200);
      expect(await response.json()).toEqual({
        id: "r1",
        object: "list",
        model: "m",
        results: [
          { index: 1, relevance_score: 7.25, document: { text: "two" } },
          { index: 2, relevance_score: 1, document: { text: "three" } },
        ],
        usage: { prompt_tokens: 12, total_tokens: 12 },
      });
    }
    expect(JSON.parse(backend.lastRequest.text)).toMatchObject({ documents: ["one", "two", "three"], top_n: 2 });
  });

  test("text-embeddings-inference is recognised by its refusal, and asked in its own form from then on", async () => {
    const backend = bed.backend({ models: ["m"] });
    answerAt(backend, "/v1/rerank", () => ({ status: 404, body: "" }));
    answerAt(backend, "/rerank", () =>
      json([
        { index: 1, score: 0.9 },
        { index: 0, score: 0.1 },
      ]),
    );
    await using gateway = await startGateway({ config: { backends: [{ name: "b", url: backend.url }] } });
    for (const attempt of [1, 2]) {
      const response = await gateway.post("/v1/rerank", { ...QUESTION, return_documents: false });
      expect(await response.json()).toMatchObject({
        results: [
          { index: 1, relevance_score: 0.9 },
          { index: 0, relevance_score: 0.1 },
        ],
      });
      expect(backend.requests.filter(({ path }) => path === "/v1/rerank")).toHaveLength(1);
      expect(backend.requests.filter(({ path }) => path === "/rerank")).toHaveLength(attempt);
    }
    expect(JSON.parse(backend.lastRequest.text)).toEqual({
      query: "q",
      texts: ["one", "two", "three"],
      return_text: false,
    });
  });

  test("an empty query and an empty list are refused with the field", async () => {
    const backend = bed.backend({ models: ["m"] });
    await using gateway = await startGateway({ config: { backends: [{ name: "b", url: backend.url }] } });
    for (const [change, param] of [
      [{ query: " " }, "query"],
      [{ documents: [] }, "documents"],
      [{ top_n: -1 }, "top_n"],
    ] as const) {
      const response = await gateway.post("/v1/rerank", { ...QUESTION, ...change });
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ error: { param } });
    }
  });

  test("a kind without such an endpoint is a clear 400", async () => {
    const backend = bed.backend({ models: ["m"] });
    await using gateway = await startGateway({
      config: { backends: [{ name: "b", type: "ollama", url: backend.url, models: ["m"] }] },
    });
    const response = await gateway.post("/v1/rerank", QUESTION);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: "unsupported_operation" } });
  });
});

describe("sparse embeddings", () => {
  const VECTORS = [[{ index: 7, value: 0.5 }], []];

  test("the answer passes unchanged, on both paths and under both names of the input", async () => {
    const backend = bed.backend({ models: ["m"] });
    answerAt(backend, "/embed_sparse", () => json(VECTORS));
    await using gateway = await startGateway({ config: { backends: [{ name: "b", url: backend.url }] } });
    for (const [path, field] of [
      ["/embed_sparse", "inputs"],
      ["/v1/embed_sparse", "input"],
    ] as const) {
      const response = await gateway.post(path, { model: "m", [field]: ["a", "b"] });
      expect(response.status).toBe(200);
      expect(await response.json()).toEqual(VECTORS);
      expect(JSON.parse(backend.lastRequest.text)).toEqual({ model: "m", inputs: ["a", "b"] });
    }
  });

  test("an answer with too few vectors is the backend's mistake", async () => {
    const backend = bed.backend({ models: ["m"] });
    answerAt(backend, "/embed_sparse", () => json([[]]));
    await using gateway = await startGateway({
      config: { backends: [{ name: "b", url: backend.url }], retry: { max_attempts: 1 } },
    });
    expect((await gateway.post("/embed_sparse", { model: "m", inputs: ["a", "b"] })).status).toBe(502);
  });
});
