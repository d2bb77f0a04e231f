// Model lists: asked once for many callers, renewed in the background, read tolerantly, enriched by a metadata file.

import { expect, test } from "bun:test";
import { expectError } from "../support/expect-error.ts";
import type { Answer, FakeBackend } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { runCommand, startGatewayProcess } from "../support/gateway-process.ts";
import { failure, html, models } from "../support/openai-answers.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

async function listedIds(gateway: Gateway): Promise<string[]> {
  const response = await gateway.fetch("/v1/models");
  if (response.status !== 200) throw new Error(`status ${response.status}`);
  return ((await response.json()) as { data: { id: string }[] }).data.map(({ id }) => id).sort();
}

const listQuestions = (backend: FakeBackend): number =>
  backend.probes.filter((probe) => probe.path === "/v1/models").length;

/** An engine of kind vllm is checked on /health, so that every question for /v1/models is one for the list. */
function engine(list: () => Answer): FakeBackend {
  const backend = bed.backend();
  backend.probeAnswer = (request) => (request.path === "/health" ? { body: "" } : list());
  return backend;
}

test("many callers at once share one question to the backend", async () => {
  const backend = engine(() => ({ ...models(["m"]), beforeHeadersMs: 30 }));
  await using gateway = await startGateway({
    config: {
      routing: { model_list_cache: { ttl: "100ms", soft_ttl_ratio: 1 } },
      backends: [{ name: "a", type: "vllm", url: backend.url }],
    },
  });
  expect(await listedIds(gateway)).toEqual(["m"]);
  await Bun.sleep(150);
  const before = listQuestions(backend);
  const lists = await Promise.all(Array.from({ length: 50 }, () => listedIds(gateway)));
  expect(lists.every((ids) => ids.join() === "m")).toBe(true);
  expect(listQuestions(backend)).toBe(before + 1);
});

test("a list that grows old is answered at once and renewed in the background", async () => {
  let version = 1;
  const backend = engine(() => ({ ...models([`v${version}`]), beforeHeadersMs: version === 1 ? 0 : 300 }));
  await using gateway = await startGateway({
    config: {
      routing: { model_list_cache: { ttl: "60s", soft_ttl_ratio: 0.001 } },
      backends: [{ name: "a", type: "vllm", url: backend.url }],
    },
  });
  expect(await listedIds(gateway)).toEqual(["v1"]);
  version = 2;
  await Bun.sleep(100);
  expect(await listedIds(gateway)).toEqual(["v1"]);
  await waitFor("the renewed list", async () => (await listedIds(gateway)).join() === "v2");
});

test("within its time a list is not asked for again", async () => {
  const backend = engine(() => models(["m"]));
  await using gateway = await startGateway({ config: { backends: [{ name: "a", type: "vllm", url: backend.url }] } });
  await listedIds(gateway);
  const before = listQuestions(backend);
  for (let count = 0; count < 10; count++) await listedIds(gateway);
  expect(listQuestions(backend)).toBe(before);
});

test("configured models need no list of the backend", async () => {
  const backend = engine(() => failure(404));
  await using gateway = await startGateway({
    config: { backends: [{ name: "a", type: "vllm", url: backend.url, models: ["x", "y"] }] },
  });
  expect(await listedIds(gateway)).toEqual(["x", "y"]);
});

test("a list that is no list costs its backend its models, not its health, and not the others theirs", async () => {
  const lists: Record<string, Answer> = {
    html: html(200),
    broken: { body: '{"object":"list","data":[' },
    number: { body: "5" },
    wrong: { body: '{"object":"list","data":"none"}' },
    refused: failure(401),
    reset: { breakWith: "reset" },
  };
  const good = engine(() => models(["m"]));
  await using gateway = await startGateway({
    config: {
      backends: [
        ...Object.entries(lists).map(([name, list]) => ({ name, type: "vllm", url: engine(() => list).url })),
        { name: "good", type: "vllm", url: good.url },
      ],
    },
  });
  expect(await listedIds(gateway)).toEqual(["m"]);
  expect((await gateway.backends()).every(({ is_healthy }) => is_healthy)).toBe(true);
  expect((await gateway.chat()).headers.get("x-signalbox-backend")).toBe("good");
});

test("lists are read tolerantly: LM Studio's keys, entries without id, doubles, further fields", async () => {
  const odd = engine(() => ({
    body: JSON.stringify({
      object: "list",
      data: [
        { id: "one", extra: { a: 1 } },
        { id: "one" },
        {},
        null,
        5,
        { id: "" },
        { id: "two", created: "yesterday" },
      ],
    }),
  }));
  const native = bed.backend();
  native.probeAnswer = (request) =>
    request.path === "/api/v1/models"
      ? { body: JSON.stringify({ models: [{ key: "publisher/native", type: "llm", loaded_instances: [] }] }) }
      : failure(404);
  await using gateway = await startGateway({
    config: {
      backends: [
        { name: "odd", type: "vllm", url: odd.url },
        { name: "native", type: "lmstudio", url: native.url },
      ],
    },
  });
  const ids = await listedIds(gateway);
  expect(ids).toContain("one");
  expect(ids).toContain("two");
  expect(ids.filter((id) => id === "one")).toHaveLength(1);
  expect((await gateway.backend("native")).is_healthy).toBe(true);
});

test("a backend that goes away takes only its own models out of the list", async () => {
  const first = engine(() => models(["shared", "first"]));
  const second = engine(() => models(["shared", "second"]));
  await using gateway = await startGateway({
    config: {
      health_checks: { interval: "50ms", unhealthy_threshold: 1 },
      backends: [
        { name: "first", type: "vllm", url: first.url },
        { name: "second", type: "vllm", url: second.url },
      ],
    },
  });
  expect(await listedIds(gateway)).toEqual(["first", "second", "shared"]);
  second.stop();
  await gateway.waitForHealth("second", false);
  expect(await listedIds(gateway)).toEqual(["first", "shared"]);
  expect((await (await gateway.fetch("/v1/models/second")).json()) as object).toMatchObject({ available: false });
  expect((await (await gateway.fetch("/v1/models/shared")).json()) as object).toMatchObject({ available: true });
});

test("names that mean something to the language mean nothing as models", async () => {
  const backend = engine(() => models(["m"]));
  await using gateway = await startGateway({ config: { backends: [{ name: "a", type: "vllm", url: backend.url }] } });
  for (const name of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
    await expectError(await gateway.fetch(`/v1/models/${name}`), 404);
    await expectError(await gateway.chat({ model: name }), 404);
  }
});

const METADATA = `models:
  - id: m
    aliases: ["m-*"]
    metadata:
      display_name: Model M
      summary: A model for tests.
      capabilities: [chat, vision, embedding]
      knowledge_cutoff: "2025-03"
      pricing: { input_tokens: 0.001, output_tokens: 0.002 }
      limits: { context_window: 8192, max_output: 1024 }
`;

test("image models say by which methods they are asked, the demo's own among them", async () => {
  const backend = engine(() => models(["gpt-image-1", "dall-e-2", "dall-e-3"]));
  await using gateway = await startGateway({
    config: {
      backends: [
        { name: "a", type: "openai", url: backend.url, api_key: "sekret-key" },
        { name: "demo", type: "demo" },
      ],
    },
  });
  const methodsOf = async (id: string) => {
    const model = (await (await gateway.fetch(`/v1/models/${id}`)).json()) as { supported_methods: string[] };
    return model.supported_methods;
  };
  expect(await methodsOf("gpt-image-1")).toEqual(["images.generations", "images.edits"]);
  expect(await methodsOf("dall-e-2")).toEqual(["images.generations", "images.edits", "images.variations"]);
  expect(await methodsOf("dall-e-3")).toEqual(["images.generations"]);
  expect(await methodsOf("demo-image")).toEqual(["images.generations"]);
});

test("--model-metadata enriches a single model, by id and by alias", async () => {
  const backend = engine(() => models(["m", "m-large", "plain"]));
  await using gateway = await startGatewayProcess({
    config: { backends: [{ name: "a", type: "vllm", url: backend.url }] },
    files: { "metadata.yaml": METADATA },
    args: ["--model-metadata", "metadata.yaml"],
  });
  for (const id of ["m", "m-large"]) {
    expect((await (await gateway.fetch(`/v1/models/${id}`)).json()) as object).toMatchObject({
      id,
      available: true,
      supported_methods: ["chat.completions", "embeddings"],
      features: ["chat", "vision", "embedding"],
      max_tokens: 1024,
      metadata: {
        display_name: "Model M",
        summary: "A model for tests.",
        knowledge_cutoff: "2025-03",
        pricing: { input_tokens: 0.001, output_tokens: 0.002 },
        limits: { context_window: 8192, max_output: 1024 },
      },
    });
  }
  const plain = (await (await gateway.fetch("/v1/models/plain")).json()) as object;
  expect(Object.keys(plain).sort()).toEqual(["available", "created", "id", "object", "owned_by"]);
});

test("a metadata file that is missing or wrong is a clear message and exit 1", async () => {
  const config = { backends: [{ name: "a", type: "demo" }] };
  const missing = await runCommand({ config, args: ["--model-metadata", "nowhere.yaml"] });
  expect(missing.exitCode).toBe(1);
  expect(missing.stderr).toContain("nowhere.yaml");
  const wrong = await runCommand({
    config,
    args: ["--model-metadata", "metadata.yaml"],
    files: { "metadata.yaml": METADATA.replace("max_output: 1024", "max_output: -1").replace("summary", "sumary") },
  });
  expect(wrong.exitCode).toBe(1);
  expect(wrong.stderr).toContain("models[0].metadata.limits.max_output");
  expect(wrong.stderr).toContain("sumary");
  expect(wrong.stderr).not.toMatch(/^\s+at /m);
});

interface Listed {
  id: string;
  backends?: string[];
  metadata?: { display_name: string };
}

async function list(gateway: Gateway): Promise<Listed[]> {
  return ((await (await gateway.fetch("/v1/models")).json()) as { data: Listed[] }).data;
}

test("the list names backends and metadata: of the backend, of the configured file, and built in", async () => {
  const first = engine(() => models(["m", "gpt-4o", "plain"]));
  const second = engine(() => models(["m"]));
  const model_configs = [{ id: "m", metadata: { display_name: "M of b", capabilities: ["rerank"] } }];
  await using gateway = await startGateway({
    config: {
      backends: [
        { name: "a", type: "vllm", url: first.url },
        { name: "b", type: "vllm", url: second.url, model_configs },
      ],
      // The specification's own spelling, which the document's type does not name.
      ...({ model_metadata_file: "facts/metadata.yaml" } as object),
    },
    files: { "facts/metadata.yaml": METADATA },
  });
  const shown = (await list(gateway)).map(({ id, backends, metadata }) => [id, backends, metadata?.display_name]);
  expect(shown).toEqual([
    ["m", ["a", "b"], "M of b"],
    ["gpt-4o", ["a"], "GPT-4o"],
    ["plain", ["a"], undefined],
  ]);
  expect((await (await gateway.fetch("/v1/models/m")).json()) as object).toMatchObject({
    supported_methods: ["rerank"],
    metadata: { display_name: "M of b" },
  });
});

test("without enrichment the list has neither, and --model-metadata wins over the configured file", async () => {
  const backend = engine(() => models(["m"]));
  await using gateway = await startGatewayProcess({
    config: {
      backends: [{ name: "a", type: "vllm", url: backend.url }],
      model_metadata: { file: "other.yaml", enrichment: false },
    },
    files: { "metadata.yaml": METADATA, "other.yaml": METADATA.replace("Model M", "Other") },
    args: ["--model-metadata", "metadata.yaml"],
  });
  const [entry] = await list(gateway);
  expect(Object.keys(entry ?? {}).sort()).toEqual([
    "created",
    "id",
    "object",
    "owned_by",
    "parent",
    "permission",
    "root",
  ]);
  const single = (await (await gateway.fetch("/v1/models/m")).json()) as Listed;
  expect(single.metadata?.display_name).toBe("Model M");
});

test("a configured file that cannot be read is a clear message with its key, and exit 1", async () => {
  const backends = [{ name: "a", type: "demo" }];
  const metadata = await runCommand({ config: { backends, model_metadata: { file: "nowhere.yaml" } } });
  expect(metadata.exitCode).toBe(1);
  expect(metadata.stderr).toContain("model_metadata.file");
  const prompt = await runCommand({
    config: { backends, global_prompts: { prompts_dir: ".", default_file: "no.md" } },
  });
  expect(prompt.exitCode).toBe(1);
  expect(prompt.stderr).toContain("global_prompts.default_file: there is no such file in prompts_dir");
});
