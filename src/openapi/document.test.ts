import { describe, expect, test } from "bun:test";
import { Ajv2020, type AnySchemaObject } from "ajv/dist/2020.js";
import { ENDPOINTS } from "../../test/support/endpoints.ts";
import { operationsOf, SchemaChecks } from "../../test/support/openapi.ts";
import officialSchema from "../../test/support/openapi-3.1.schema.json" with { type: "json" };
import { SECTIONS } from "../config/sections/registry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { VERSION } from "../names.ts";
import { readChatRequest } from "../protocols/chat/read-request.ts";
import { readCompletionRequest } from "../protocols/completions/read-request.ts";
import { readSparseEmbeddingRequest } from "../protocols/embed-sparse/read-request.ts";
import { readEmbeddingRequest } from "../protocols/embeddings/read-request.ts";
import { readCountRequest } from "../protocols/generate-content/count-tokens.ts";
import { readBatchRequest, readEmbedRequest } from "../protocols/generate-content/embed-content.ts";
import { readContentRequest } from "../protocols/generate-content/read-request.ts";
import { readCountTokensRequest, readMessagesRequest } from "../protocols/messages/read-request.ts";
import { readRerankRequest } from "../protocols/rerank/read-request.ts";
import { readResponsesRequest } from "../protocols/responses/read-request.ts";
import type { Endpoint } from "../server/endpoint.ts";
import { createRouteTable } from "../server/route-table.ts";
import { openApiDocument, variantsOf } from "./document.ts";
import type { DescribedEndpoint } from "./operation.ts";
import { openApiRoute } from "./route.ts";
import { sectionRef } from "./section-schemas.ts";

const document = openApiDocument(ENDPOINTS);
const checks = new SchemaChecks(document);
const operations = operationsOf(document);
const nameOf = ({ method, path }: { method: string; path: string }) => `${method} ${path}`;

describe("the document", () => {
  test("is valid OpenAPI 3.1 by the schema of the OpenAPI Initiative", () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
    const validate = ajv.compile(officialSchema as AnySchemaObject);
    validate(document);
    expect(validate.errors ?? []).toEqual([]);
  });

  test("is the same, frozen, and plain JSON", () => {
    expect(Object.isFrozen(document)).toBe(true);
    expect(JSON.parse(JSON.stringify(document))).toEqual(document);
    expect(openApiDocument(ENDPOINTS)).toEqual(document);
    expect(document).toMatchObject({ info: { version: VERSION } });
  });

  test("has nothing behind a reference that leads nowhere", () => {
    const lost = referencesOf(document).filter((reference) => lookUp(reference) === undefined);
    expect(lost).toEqual([]);
  });

  test("has no component that nobody refers to", () => {
    const used = new Set([...referencesOf(document), ...operations.flatMap(securityReferences)]);
    const { components } = document as { components: Record<string, Record<string, unknown>> };
    const idle = Object.entries(components).flatMap(([group, members]) =>
      Object.keys(members)
        .map((name) => `#/components/${group}/${name}`)
        .filter((reference) => !used.has(reference)),
    );
    expect(idle).toEqual([]);
  });

  test("has an id of its own for every operation", () => {
    const ids = operations.map(({ operationId }) => operationId);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
    expect(operations.length).toBe(SHOWN.length);
  });

  test("describes exactly the parameters of each path", () => {
    for (const { path, parameters = [] } of operations) {
      const described = parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name);
      expect({ path, parameters: described }).toEqual({
        path,
        parameters: [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name as string),
      });
    }
  });

  test("has schemas that a strict reader accepts, and examples that match them", () => {
    const wrong: string[] = [];
    for (const operation of operations) {
      const { path } = operation;
      for (const [type, { schema, example }] of Object.entries(operation.requestBody?.content ?? {})) {
        const problems = checks.problems(schema, example);
        // A form has files, which no example can show; the variants of a section are too many for examples.
        const isWithout = type === "multipart/form-data" || path.startsWith("/admin/config/");
        if (isWithout && example === undefined) continue;
        wrong.push(...problems.map((problem) => `${nameOf(operation)}: ${problem}`));
      }
      for (const status of Object.keys(operation.responses)) {
        const { content = {} } = checks.response(operation, Number(status));
        // A schema that cannot be compiled throws.
        for (const { schema, ...media } of Object.values(content)) {
          for (const each of [schema, media["x-event-data"] ?? {}]) checks.problems(each, undefined);
        }
      }
    }
    expect(wrong).toEqual([]);
  });
});

/** As the document shows them. */
const SHOWN = ENDPOINTS.flatMap(variantsOf);

describe("endpoints", () => {
  const pathOf = ({ path }: DescribedEndpoint) => path.replace("...}", "}");

  test("every one is described, and nothing else is", () => {
    expect(operations.map(nameOf).toSorted()).toEqual(
      SHOWN.map((endpoint) => nameOf({ ...endpoint, path: pathOf(endpoint) })).toSorted(),
    );
  });

  test("they stand beside each other in one table", () => {
    expect(() => createRouteTable(ENDPOINTS)).not.toThrow();
  });

  test("each asks for the credentials that it is described with", () => {
    const isOpen = ({ access, credentials }: DescribedEndpoint) => access === "open" && credentials === undefined;
    expect(operations.filter(({ security }) => security.length === 0).map(({ path }) => path)).toEqual(
      SHOWN.filter(isOpen).map(pathOf),
    );
    const adminPaths = operations.filter(({ security }) => security.some((scheme) => "admin_bearer" in scheme));
    expect(adminPaths.map(({ path }) => path)).toEqual(
      operations.map(({ path }) => path).filter((path) => path.startsWith("/admin/")),
    );
  });

  test("GET /openapi.json answers the document", async () => {
    const route = openApiRoute(async () => ENDPOINTS);
    const call = { headers: { "X-Request-ID": "1" } } as unknown as Parameters<Endpoint["handle"]>[0];
    for (let time = 0; time < 2; time++) {
      const response = await route.handle(call);
      expect(response.headers.get("content-type")).toBe("application/json");
      expect(response.headers.get("x-request-id")).toBe("1");
      expect(await response.json()).toEqual(document);
    }
  });
});

test("every status of the catalogue of errors is described for some operation", () => {
  const described = new Set(ENDPOINTS.flatMap(({ errors }) => errors));
  // 405 belongs to paths, not to operations.
  const missing = Object.values(ERRORS).filter(({ status }) => status !== 405 && !described.has(status));
  expect(missing).toEqual([]);
});

describe("the configuration", () => {
  test.each(SECTIONS.map(({ name, schema }) => [name, schema] as const))("%s has its own schema", (name, schema) => {
    const reference = sectionRef(name);
    const empty = name === "backends" ? [] : {};
    for (const value of [empty, { no_such_key: 1 }, [{ name: "a", url: "nonsense" }], 1]) {
      expect(checks.problems(reference, value).length === 0).toBe(schema.safeParse(value).success);
    }
  });
});

/** Bodies that are good, and changes that make them bad or leave them good. */
const REQUESTS: [schema: string, read: (body: Record<string, unknown>) => unknown, good: object, changes: object[]][] =
  [
    [
      "ChatCompletionRequest",
      readChatRequest,
      { model: "m", messages: [{ role: "user", content: "hi" }] },
      [
        { messages: [] },
        { messages: [{ role: "user" }] },
        { messages: [{ role: "assistant" }] },
        { messages: [{ role: "assistant", content: null }] },
        { messages: [{ role: "", content: "x" }] },
        { messages: [{ role: "user", content: 1 }] },
        { messages: [{ role: "user", content: [{ type: "text", text: "x" }] }] },
        { messages: [{ role: "user", content: [{ text: "x" }] }] },
        { max_tokens: 0 },
        { max_completion_tokens: 1.5 },
        { top_logprobs: 21 },
        { n: 129 },
        { temperature: 2.1 },
        { temperature: null },
        { stop: ["a", 1] },
        { stop: "a" },
        { stream: "yes" },
        { logit_bias: [] },
        { tools: {} },
        { reasoning: { effort: 1 } },
        { reasoning: { effort: "any" } },
        { unknown: { a: 1 } },
      ],
    ],
    [
      "CompletionRequest",
      readCompletionRequest,
      { model: "m", prompt: "x" },
      [{ prompt: undefined }, { prompt: null }, { prompt: [1, 2] }, { prompt: {} }, { max_tokens: 0 }, { best_of: 0 }],
    ],
    [
      "ResponsesRequest",
      readResponsesRequest,
      { model: "m", input: "x" },
      [
        { input: undefined },
        { input: [{ role: "user", content: "x" }] },
        { input: 1 },
        { reasoning: { effort: "extreme" } },
        { reasoning: { effort: "xhigh" } },
        { max_output_tokens: 0 },
        { tool_choice: "some" },
        { tool_choice: { type: "function", name: "f" } },
        { tools: [{}] },
        { tools: [{ type: "web_search" }] },
        { include: [1] },
        { conversation: 1 },
      ],
    ],
    [
      "MessagesRequest",
      readMessagesRequest,
      { model: "m", max_tokens: 1, messages: [{ role: "user", content: "x" }] },
      [
        { max_tokens: undefined },
        { max_tokens: -1 },
        { messages: [{ role: "tool", content: "x" }] },
        { messages: [{ role: "user", content: null }] },
        { system: 1 },
        { system: [{ type: "text", text: "x" }] },
        { temperature: 1.1 },
        { stop_sequences: [1] },
        { tool_choice: {} },
        { thinking: "on" },
      ],
    ],
    [
      "CountTokensRequest",
      readCountTokensRequest,
      { model: "m", messages: [{ role: "user", content: "x" }] },
      [{ messages: "x" }, { model: "" }, { tools: 1 }],
    ],
    [
      "EmbeddingRequest",
      readEmbeddingRequest,
      { model: "m", input: "x" },
      [{ input: "" }, { input: [] }, { input: [1, 2] }, { dimensions: 0 }, { encoding_format: "hex" }, { user: 1 }],
    ],
    [
      "RerankRequest",
      readRerankRequest,
      { model: "m", query: "q", documents: ["a", { text: "b" }] },
      [
        { query: "" },
        { documents: [] },
        { documents: [""] },
        { documents: [{}] },
        { documents: [{ image: "x" }] },
        { documents: [1] },
        { top_n: -1 },
        { top_n: 0 },
        { top_k: 1.5 },
        { return_documents: "yes" },
      ],
    ],
    [
      "SparseEmbeddingRequest",
      readSparseEmbeddingRequest,
      { model: "m", inputs: ["a"] },
      [{ inputs: "a" }, { inputs: [] }, { inputs: 1 }, { inputs: [1] }],
    ],
    [
      "GenerateContentRequest",
      (body) => readContentRequest(body, "m", false),
      { contents: [{ role: "user", parts: [{ text: "x" }] }] },
      [
        ...[{ contents: [] }, { contents: "x" }, { contents: undefined }, { contents: [1] }],
        ...[{ systemInstruction: "s" }, { systemInstruction: 1 }, { tools: [1] }, { tools: [{}] }, { toolConfig: 1 }],
        ...[{ temperature: 2 }, { temperature: 3 }, { topP: 2 }, { maxOutputTokens: 0 }, { candidateCount: 9 }].map(
          (generationConfig) => ({ generationConfig }),
        ),
        ...[{ stopSequences: [1] }, { thinkingConfig: 1 }].map((generationConfig) => ({ generationConfig })),
      ],
    ],
    [
      "CountContentRequest",
      (body) => readCountRequest(body, "m"),
      { contents: [{ parts: [{ text: "x" }] }] },
      [{ contents: [] }, { tools: [1] }, { generationConfig: 1 }],
    ],
    [
      "EmbedContentRequest",
      (body) => readEmbedRequest(body, "m"),
      { content: { parts: [{ text: "x" }] } },
      [{ content: undefined }, { content: 1 }],
    ],
    [
      "BatchEmbedContentsRequest",
      (body) => readBatchRequest(body, "m"),
      { requests: [{ model: "models/m", content: { parts: [{ text: "x" }] } }] },
      [{ requests: [] }, { requests: 1 }, { requests: [1] }, { requests: [{}] }],
    ],
  ];

describe.each(REQUESTS)("%s", (name, read, good, changes) => {
  test.each([{}, { model: undefined }, { model: "" }, { model: 1 }, ...changes])(
    "%j: as the gateway says",
    (change) => {
      const body = JSON.parse(JSON.stringify({ ...good, ...change })) as Record<string, unknown>;
      const problems = checks.problems({ $ref: `#/components/schemas/${name}` }, body);
      expect({ problems, fine: problems.length === 0 }).toMatchObject({ fine: isAccepted(() => read(body)) });
    },
  );
});

function isAccepted(action: () => unknown): boolean {
  try {
    action();
    return true;
  } catch {
    return false;
  }
}

function referencesOf(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  const { $ref } = value as { $ref?: unknown };
  const own = typeof $ref === "string" ? [$ref] : [];
  return [...own, ...Object.values(value).flatMap(referencesOf)];
}

function securityReferences({ security }: { security: Record<string, string[]>[] }): string[] {
  return security.flatMap((requirement) =>
    Object.keys(requirement).map((name) => `#/components/securitySchemes/${name}`),
  );
}

function lookUp(reference: string): unknown {
  const parts = reference.replace(/^#\//, "").split("/");
  return parts.reduce<unknown>((value, part) => (value as Record<string, unknown> | undefined)?.[part], document);
}
