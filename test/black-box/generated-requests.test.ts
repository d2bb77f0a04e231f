// /openapi.json under requests that are generated from it: every answer has a status and a body that the document declares,
// what breaks the document is refused, and what fits it is refused only for reasons that a schema cannot express.

import { expect, test } from "bun:test";
import type { AnySchemaObject } from "ajv/dist/2020.js";
import fc from "fast-check";
import { type OpenApiOperation, operationsOf, SchemaChecks } from "../support/openapi.ts";
import { SchemaArbitraries } from "../support/openapi-arbitraries.ts";
import { createTestBed } from "../support/test-bed.ts";

/** Requests for each operation; `GENERATED_REQUESTS=1000 sh bin/bun test …` is the long form. */
const RUNS = Number(process.env.GENERATED_REQUESTS ?? 15);

/** Streams that do not end, and the end of the processes that answer. */
const LEFT_OUT = new Set(["followEvents", "restartWorkers"]);

/** Refusals of requests that fit the document, by the tag or the id of an operation: rules between members, and what exists. */
const EXPLAINED: Readonly<Record<string, RegExp>> = {
  // Rules of a conversation, of a model, and of what its backend can do.
  Generation: /./,
  // Rules between settings, and of values that no schema expresses: addresses, patterns, URLs of a type.
  Configuration: /"type":"validation_error"|There are no pending changes|confirm_variables/,
  Backends: /"type":"validation_error"/,
  Keys: /"type":"validation_error"/,
  Budgets: /"type":"validation_error"/,
  Organizations: /"type":"validation_error"/,
  Routes: /"type":"validation_error"/,
  Queue: /"type":"validation_error"/,
  // A custom_id that stands twice, streams, files that there are not, and what metadata may be.
  Batches: /must be unique|params\.stream must not|"file_resolution_failed"|metadata must/,
  Notifications: /"type":"validation_error"/,
  listModelsForMessages: /there is no model/,
  listContentModels: /there is no such page/,
  // What can be asked again, filters that mean nothing, and times as below.
  Recordings: /"type":"validation_error"|must be a time|must be left out where|The time range is empty/,
  // Days that a month does not have, times in the wrong order, a window beside them, a name twice.
  Observation: /must be a time|must be left out where|The time range is empty|'by' must be/,
};

const bed = createTestBed();
const gateway = await bed.gateway({
  config: {
    server: { bind_address: "127.0.0.1:0" },
    backends: [{ name: "demo", type: "demo" }],
    response_cache: { enabled: true },
    kv_cache_index: { enabled: true },
    global_prompts: { prompts_dir: "prompts", models: { other: { prompt_file: "terse.md" } } },
  },
  files: { "prompts/terse.md": "You are terse.\n" },
});
const document = (await (await gateway.fetch("/openapi.json")).json()) as object;
const checks = new SchemaChecks(document, { closed: true });
const arbitraries = new SchemaArbitraries(document);

interface Generated {
  parameters: Record<string, unknown>;
  body: unknown;
}

interface Answered {
  status: number;
  type: string;
  text: string;
}

const asText = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

const oddTexts = fc.oneof(
  fc.constantFrom("false", "-1", "0", "1.5", "1e3", "x", "NaN", "100000", "2026-13-45", "*", "%"),
  fc.string({ minLength: 1, maxLength: 8, unit: "grapheme-ascii" }),
);

function requests({ parameters = [], requestBody }: OpenApiOperation): fc.Arbitrary<Generated> {
  const values = parameters.map(({ name, in: place, schema }) => {
    // A path without a segment is another path.
    const fitting = arbitraries.fitting(schema).filter((value) => place !== "path" || asText(value) !== "");
    return [name, fc.oneof({ weight: 4, arbitrary: fitting }, { weight: 1, arbitrary: oddTexts })] as const;
  });
  const requiredKeys = parameters.filter(({ required }) => required).map(({ name }) => name);
  const schema = jsonBodyOf(requestBody);
  const body =
    schema === undefined ? fc.constant(undefined) : fc.oneof(arbitraries.fitting(schema), arbitraries.mutated(schema));
  return fc.record({ parameters: fc.record(Object.fromEntries(values), { requiredKeys }), body });
}

function jsonBodyOf(requestBody: OpenApiOperation["requestBody"]): AnySchemaObject | undefined {
  return requestBody?.content["application/json"]?.schema;
}

/** A parameter is a text; a boolean or a number is what the text can be read as. */
function fitsParameter(schema: AnySchemaObject, value: unknown): boolean {
  const text = asText(value);
  const readings: unknown[] = [text];
  if (/^-?\d+(\.\d+)?$/.test(text)) readings.push(Number(text));
  // As info.description says of flags.
  if (schema.type === "boolean") readings.push({ true: true, "1": true, false: false, "0": false }[text.toLowerCase()]);
  return readings.some((reading) => checks.problems(schema, reading).length === 0);
}

function fits({ parameters: declared = [], requestBody }: OpenApiOperation, { parameters, body }: Generated): boolean {
  const schema = jsonBodyOf(requestBody);
  return (
    declared.every(({ name, schema }) => parameters[name] === undefined || fitsParameter(schema, parameters[name])) &&
    (schema === undefined || checks.problems(schema, body).length === 0)
  );
}

async function send(
  { method, path, parameters: declared = [] }: OpenApiOperation,
  generated: Generated,
): Promise<Answered> {
  let target = path;
  const query = new URLSearchParams();
  const headers = new Headers();
  for (const { name, in: place } of declared) {
    const value = generated.parameters[name];
    if (value === undefined) continue;
    if (place === "path") target = target.replace(`{${name}}`, encodeURIComponent(asText(value)));
    else if (place === "query") query.set(name, asText(value));
    else headers.set(name, asText(value));
  }
  // Nothing that is generated may take the gateway away from the next request.
  const canBeTried = declared.some(({ name }) => name === "dry_run");
  if (canBeTried && (query.get("dry_run") ?? "false") === "false") query.set("dry_run", "true");
  const { body } = generated;
  if (body !== undefined) headers.set("Content-Type", "application/json");
  const response = await gateway.fetch(`${target}?${query}`, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const type = (response.headers.get("content-type") ?? "").split(";")[0] as string;
  return { status: response.status, type, text: await response.text() };
}

/** Undefined where the answer is as declared. */
function undeclared(operation: OpenApiOperation, { status, type, text }: Answered): string | undefined {
  const { content } = checks.response(operation, status);
  if (text === "") return undefined;
  const media = content?.[type];
  if (media === undefined) return `an answer ${status} of type ${type} is not declared`;
  if (type !== "application/json") return undefined;
  const problems = checks.problems(media.schema, JSON.parse(text));
  return problems.length === 0 ? undefined : `the body of ${status} is not as declared: ${problems.join("; ")}`;
}

const operations = operationsOf(document).filter(({ operationId }) => !LEFT_OUT.has(operationId));

test.each(operations.map((operation) => [`${operation.method} ${operation.path}`, operation] as const))(
  "%s",
  async (_, operation) => {
    const isForm = operation.requestBody !== undefined && jsonBodyOf(operation.requestBody) === undefined;
    const explained = EXPLAINED[operation.operationId] ?? EXPLAINED[operation.tags?.[0] ?? ""];
    await fc.assert(
      fc.asyncProperty(requests(operation), async (generated) => {
        const answer = await send(operation, generated);
        expect(undeclared(operation, answer)).toBeUndefined();
        const isRefused = answer.status >= 400;
        if (!fits(operation, generated)) expect({ answer, isRefused }).toEqual({ answer, isRefused: true });
        else if (answer.status === 400 && !isForm && explained?.test(answer.text) !== true) {
          throw new Error(`refused although it fits: ${answer.text}`);
        }
      }),
      { numRuns: RUNS, seed: 7 },
    );
  },
);
