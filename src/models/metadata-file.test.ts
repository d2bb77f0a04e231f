// The metadata file: every field, every problem named with its place, and no document that throws.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { loadModelMetadata, parseModelMetadata } from "./metadata-file.ts";

const COMPLETE = `
models:
  - id: gpt-4o
    aliases: [chatgpt-4o-latest, "gpt-4o*"]
    metadata:
      display_name: GPT-4o
      developer: OpenAI
      summary: Fast and able.
      capabilities: [chat, vision, function_calling]
      knowledge_cutoff: 2023-10
      relative_speed: 4
      pricing: { input_tokens: 0.0025, output_tokens: 0.01 }
      limits: { context_window: 128000, max_output: 16384 }
  - id: qwq-32b
    metadata:
      thinking: { pattern: unterminated_start, end_marker: "</think>\\n", assume_reasoning_first: true }
`;

async function problemsOf(content: string): Promise<string[]> {
  const result = await parseModelMetadata(content);
  return result.ok ? [] : result.problems;
}

describe("parseModelMetadata", () => {
  test("reads every field and fills in the defaults of a thinking block", async () => {
    expect(await parseModelMetadata(COMPLETE)).toEqual({
      ok: true,
      entries: [
        {
          id: "gpt-4o",
          aliases: ["chatgpt-4o-latest", "gpt-4o*"],
          metadata: {
            display_name: "GPT-4o",
            developer: "OpenAI",
            summary: "Fast and able.",
            capabilities: ["chat", "vision", "function_calling"],
            knowledge_cutoff: "2023-10",
            relative_speed: 4,
            pricing: { input_tokens: 0.0025, output_tokens: 0.01 },
            limits: { context_window: 128000, max_output: 16384 },
          },
        },
        {
          id: "qwq-32b",
          aliases: [],
          metadata: {
            thinking: {
              pattern: "unterminated_start",
              start_marker: "<think>",
              end_marker: "</think>\n",
              assume_reasoning_first: true,
            },
          },
        },
      ],
    });
  });

  test("names all problems at once, each with its place", async () => {
    const problems = await problemsOf(`
model: []
models:
  - id: a
    alias: [b]
    metadata: { display_nam: A, relative_speed: 9, limits: { max_output: 0 }, colour: red }
  - metadata: { pricing: { input_tokens: -1 }, knowledge_cutoff: 2024-13, thinking: { pattern: odd } }
  - id: "gpt-*"
`);
    expect(problems.toSorted()).toEqual(
      [
        "models[0].metadata.limits.max_output: must be at least 1",
        "models[0].metadata.relative_speed: Too big: expected number to be <=5",
        'models[0].metadata: unknown key "colour"; known are display_name, developer, summary, capabilities, knowledge_cutoff, available_until, relative_speed, pricing, limits, thinking',
        'models[0].metadata: unknown key "display_nam"; did you mean "display_name"?',
        'models[0]: unknown key "alias"; did you mean "aliases"?',
        "models[1].id: Invalid input: expected string, received undefined",
        'models[1].metadata.knowledge_cutoff: expected a year and month, such as "2025-03"',
        "models[1].metadata.pricing.input_tokens: must not be negative",
        'models[1].metadata.thinking.pattern: Invalid option: expected one of "none"|"standard"|"unterminated_start"',
        'models[2].id: must be one model; patterns with "*" belong in aliases',
        'unknown key "model"; did you mean "models"?',
      ].toSorted(),
    );
  });

  test("refuses a name that two entries claim", async () => {
    expect(await problemsOf("models: [{id: a, aliases: [x, x]}, {id: a}, {id: b, aliases: [x]}, {id: x}]")).toEqual([
      'models[1].id: "a" is already the id of models[0]',
      'models[2].aliases: "x" is already an alias of models[0]',
    ]);
  });

  test.each(["", "null", "[]", "models:", "text", "models: {}", "models: [1]"])("refuses %p", async (content) => {
    expect(await problemsOf(content)).toHaveLength(1);
  });

  test("names the line of broken YAML", async () => {
    expect(await problemsOf("models:\n  - id: [a\n")).toEqual([expect.stringContaining("line 3")]);
    expect(await problemsOf("models: *nowhere")).toEqual([expect.stringContaining("nowhere")]);
  });

  test("refuses references that multiply", async () => {
    const levels = Array.from({ length: 9 }, (_, level) => {
      const previous = level === 0 ? '"x"' : `*l${level - 1}`;
      return `l${level}: &l${level} [${Array(9).fill(previous).join(", ")}]`;
    });
    expect(await problemsOf(`${levels.join("\n")}\nmodels: *l8\n`)).toEqual([expect.stringContaining("alias")]);
  });

  test("never throws, whatever the document", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.json().map((json) => `models: ${json}`),
        ),
        async (content) => {
          const result = await parseModelMetadata(content);
          if (!result.ok) expect(result.problems.length).toBeGreaterThan(0);
        },
      ),
    );
  });
});

describe("loadModelMetadata", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "metadata-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  test("reads a file", async () => {
    const path = join(folder, "metadata.yaml");
    await Bun.write(path, COMPLETE);
    const result = await loadModelMetadata(path);
    expect(result.ok && result.entries.map((entry) => entry.id)).toEqual(["gpt-4o", "qwq-32b"]);
  });

  test("says what is wrong with a file that cannot be read", async () => {
    const missing = join(folder, "missing.yaml");
    expect(await loadModelMetadata(missing)).toEqual({
      ok: false,
      problems: [`${missing} cannot be read: there is no such file`],
    });
    expect((await loadModelMetadata(folder)).ok).toBe(false);
  });
});
