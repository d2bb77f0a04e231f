// The bytes that are hashed, and their hashes: exactly those that the decision names (docs/decisions/0044).

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { passThrough } from "../protocols/registry.ts";
import { CanonicalPrompt } from "./canonical-prompt.ts";
import { BLOCK_BYTES, PrefixHasher } from "./prefix-hash.ts";

const encoder = new TextEncoder();

/** As the decision says it, without any care for speed. */
function hashesOf(prompt: string): string[] {
  const bytes = encoder.encode(prompt);
  const hashes: string[] = [];
  let seed = 0n;
  for (let end = BLOCK_BYTES; end <= bytes.length; end += BLOCK_BYTES) {
    seed = Bun.hash.xxHash64(bytes.slice(end - BLOCK_BYTES, end), seed);
    hashes.push(seed.toString(16).padStart(16, "0"));
  }
  return hashes;
}

function deepestOf(format: string, model: string, body: Record<string, unknown>): string | undefined {
  const canonical = new CanonicalPrompt();
  canonical.begin(model, body.tools);
  passThrough(format).readPrompt?.(body, canonical);
  return canonical.end()?.deepest;
}

const long = (word: string, bytes: number) => word.repeat(Math.ceil(bytes / word.length)).slice(0, bytes);

describe("prefix hashes", () => {
  test("property: any texts give the hashes of their whole, however they are cut", () => {
    const hasher = new PrefixHasher();
    const text = fc.oneof(
      fc.string({ unit: "binary", maxLength: 40 }),
      fc.string({ unit: "grapheme", maxLength: 3_000 }),
      fc
        .tuple(fc.constantFrom("a", "é", "漢", "😀", "\ud800"), fc.nat({ max: 70_000 }))
        .map(([unit, n]) => unit.repeat(n)),
    );
    fc.assert(
      fc.property(fc.array(text, { maxLength: 6 }), (texts) => {
        hasher.begin();
        for (const each of texts) {
          hasher.text(each);
          hasher.lineFeed();
        }
        const chain = hasher.end();
        // A text is encoded by itself: halves of a surrogate pair in two texts are no pair.
        const bytes = texts.map((each) => new TextDecoder().decode(encoder.encode(each))).join("\n");
        const expected = hashesOf(texts.length === 0 ? "" : `${bytes}\n`);
        expect(chain?.blocks ?? 0).toBe(expected.length);
        expect(chain?.deepest).toBe(expected.at(-1) as string);
        expect(chain?.first).toBe(expected[0] as string);
      }),
      { numRuns: 60 },
    );
  });

  test("known values", () => {
    const hasher = new PrefixHasher();
    hasher.begin();
    hasher.text("a".repeat(1024));
    const chain = hasher.end();
    expect(chain?.first).toBe(Bun.hash.xxHash64("a".repeat(512)).toString(16).padStart(16, "0"));
    expect(chain?.blocks).toBe(2);
  });
});

describe("the canonical prompt", () => {
  const system = long("You are helpful. ", 700);
  const question = long("What is it? ", 300);
  const reply = long("It is that. ", 300);
  const whole = `m\n\nsystem\n${system}\nuser\n${question}\nassistant\n${reply}\nuser\nand then?${question}\n`;

  test("is the same in every format that says the same", () => {
    const turns = [
      { role: "user", content: question },
      { role: "assistant", content: reply },
      { role: "user", content: `and then?${question}` },
    ];
    const expected = hashesOf(whole).at(-1) as string;
    expect(deepestOf("chat", "m", { messages: [{ role: "system", content: system }, ...turns] })).toBe(expected);
    expect(deepestOf("messages", "m", { system, messages: turns })).toBe(expected);
    expect(deepestOf("messages", "m", { system: [{ type: "text", text: system }], messages: turns })).toBe(expected);
    expect(deepestOf("responses", "m", { instructions: system, input: turns })).toBe(expected);
  });

  test("holds the tools as compact JSON, and parts joined by line feeds", () => {
    const tools = [{ type: "function", function: { name: "f", description: long("does ", 600) } }];
    const content = [
      { type: "text", text: "one" },
      { type: "text", text: question },
    ];
    const expected = hashesOf(`m\n${JSON.stringify(tools)}\nuser\none\n${question}\n`).at(-1) as string;
    expect(deepestOf("chat", "m", { tools, messages: [{ role: "user", content }] })).toBe(expected);
  });

  test("holds media as the hash of their bytes, or of their address", () => {
    const bytes = encoder.encode("not really a picture");
    const base64 = Buffer.from(bytes).toString("base64");
    const hash = (content: string | Uint8Array) => Bun.hash.xxHash64(content).toString(16).padStart(16, "0");
    const link = "https://example.com/a.png";
    const expected = hashesOf(`m\n\nuser\n${system}\n${hash(bytes)}\n${hash(link)}\n${system}\n`).at(-1) as string;
    const content = [
      { type: "text", text: system },
      { type: "image_url", image_url: { url: `data:image/png;base64,${base64}` } },
      { type: "image_url", image_url: { url: link } },
      { type: "text", text: system },
    ];
    expect(deepestOf("chat", "m", { messages: [{ role: "user", content }] })).toBe(expected);
    const blocks = [
      { type: "text", text: system },
      { type: "image", source: { type: "base64", media_type: "image/png", data: base64 } },
      { type: "image", source: { type: "url", url: link } },
      { type: "text", text: system },
    ];
    expect(deepestOf("messages", "m", { messages: [{ role: "user", content: blocks }] })).toBe(expected);
    const parts = [
      { type: "input_text", text: system },
      { type: "input_image", image_url: `data:image/png;base64,${base64}` },
      { type: "input_image", image_url: link },
      { type: "input_text", text: system },
    ];
    expect(deepestOf("responses", "m", { input: [{ role: "user", content: parts }] })).toBe(expected);
  });

  test("of results of tools holds their texts", () => {
    const chat = [
      { role: "user", content: system },
      { role: "assistant", content: null, tool_calls: [{ id: "c", type: "function" }] },
      { role: "tool", tool_call_id: "c", content: system },
    ];
    const expected = hashesOf(`m\n\nuser\n${system}\nassistant\n\ntool\n${system}\n`).at(-1) as string;
    expect(deepestOf("chat", "m", { messages: chat })).toBe(expected);
    const results = [{ type: "tool_result", tool_use_id: "c", content: [{ type: "text", text: system }] }];
    const ofMessages = hashesOf(`m\n\nuser\n${system}\n`).at(-1) as string;
    expect(deepestOf("messages", "m", { messages: [{ role: "user", content: results }] })).toBe(ofMessages);
    expect(
      deepestOf("responses", "m", { input: [{ type: "function_call_output", call_id: "c", output: system }] }),
    ).toBe(hashesOf(`m\n\ntool\n${system}\n`).at(-1) as string);
  });

  test("of a text completion is what a user says", () => {
    const expected = hashesOf(`m\n\nuser\n${system}\n`).at(-1) as string;
    expect(deepestOf("completions", "m", { prompt: system })).toBe(expected);
    expect(deepestOf("completions", "m", { prompt: [system] })).toBe(expected);
  });

  test("that is shorter than a block has no hash, and another model another one", () => {
    expect(deepestOf("chat", "m", { messages: [{ role: "user", content: "hello" }] })).toBeUndefined();
    const body = { messages: [{ role: "user", content: system }] };
    expect(deepestOf("chat", "other", body)).not.toBe(deepestOf("chat", "m", body) as string);
  });

  test("takes whatever the fields hold", () => {
    for (const format of ["chat", "messages", "responses", "completions"]) {
      fc.assert(
        fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
          const body = { messages: value, system: value, input: value, prompt: value, instructions: value } as never;
          deepestOf(format, "m", body);
        }),
        { numRuns: 100 },
      );
    }
  });
});
