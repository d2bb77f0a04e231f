// Answers that are kept and told in their other form, read by the official SDKs: what they read of a stream and of the whole
// answer made of it is the same, and the other way round.

import { describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import fc from "fast-check";
import OpenAI from "openai";
import { asEvents } from "../../src/generation/as-events.ts";
import type { GenerationEvent } from "../../src/generation/events.ts";
import type { GenerationResult } from "../../src/generation/result.ts";
import type { AnswerContext } from "../../src/protocols/protocol.ts";
import { clientProtocol, keptAnswers } from "../../src/protocols/registry.ts";
import { FIXTURES } from "../translation/fixtures.ts";

const FORMATS = ["chat", "completions", "responses", "messages"] as const;
type Format = (typeof FORMATS)[number];

/** Gives this body to whatever an SDK asks. */
function answering(body: string, contentType: string) {
  const fetch = async () => new Response(body, { headers: { "Content-Type": contentType } });
  return { apiKey: "sekret", baseURL: "http://never.asked", maxRetries: 0, fetch };
}

const asked = { model: "m", messages: [{ role: "user" as const, content: "hi" }] };

/** What an SDK reads of a whole answer. */
const readWhole: Record<Format, (body: string) => Promise<unknown>> = {
  async chat(body) {
    return await new OpenAI(answering(body, "application/json")).chat.completions.create(asked);
  },
  async completions(body) {
    return await new OpenAI(answering(body, "application/json")).completions.create({ model: "m", prompt: "hi" });
  },
  async responses(body) {
    return await new OpenAI(answering(body, "application/json")).responses.create({ model: "m", input: "hi" });
  },
  async messages(body) {
    return await new Anthropic(answering(body, "application/json")).messages.create({ ...asked, max_tokens: 9 });
  },
};

/** What its helper makes of a stream. */
const readStream: Record<Format, (events: string) => Promise<unknown>> = {
  async chat(events) {
    return await new OpenAI(answering(events, "text/event-stream")).chat.completions
      .stream(asked)
      .finalChatCompletion();
  },
  async completions(events) {
    const client = new OpenAI(answering(events, "text/event-stream"));
    let usage: unknown;
    const texts: string[] = [];
    const finishes: unknown[] = [];
    for await (const chunk of await client.completions.create({ model: "m", prompt: "hi", stream: true })) {
      usage = chunk.usage ?? usage;
      for (const { index, text, finish_reason } of chunk.choices) {
        texts[index] = (texts[index] ?? "") + text;
        finishes[index] = finish_reason ?? finishes[index];
      }
    }
    return { choices: texts.map((text, index) => ({ index, text, finish_reason: finishes[index] })), usage };
  },
  async responses(events) {
    return await new OpenAI(answering(events, "text/event-stream")).responses
      .stream({ model: "m", input: "hi" })
      .finalResponse();
  },
  async messages(events) {
    const client = new Anthropic(answering(events, "text/event-stream"));
    return await client.messages.stream({ ...asked, max_tokens: 9 }).finalMessage();
  },
};

/** Members that only the helpers add, that no stream tells, or of which the helper for chat keeps the last piece alone. */
const ADDED = new Set([
  ...["parsed", "parsed_arguments", "output_parsed", "object", "_request_id", "logprobs"],
  ...["reasoning_content", "reasoning"],
]);

/** Without what is null, empty or added: the helpers differ in that by themselves. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).filter(([name, member]) => {
    return (
      !ADDED.has(name) &&
      member !== null &&
      !(name === "content" && member === "") &&
      !(Array.isArray(member) && member.length === 0)
    );
  });
  return Object.fromEntries(members.map(([name, member]) => [name, plain(member)]));
}

const keptOf = (format: Format) => keptAnswers(format)!;

describe("recorded answers", () => {
  const recorded = FIXTURES.flatMap((fixture) => {
    const format = fixture.format === "local" ? "chat" : fixture.format;
    return format === "generate-content" || format === "converse"
      ? []
      : [{ ...fixture, format, stream: new TextDecoder().decode(fixture.stream) }];
  });
  const changed = { streams: 0, wholes: 0 };

  test.each(recorded)("$name", async ({ format, stream, whole }) => {
    const kept = keptOf(format);
    if (kept.isWholeStream(stream)) {
      const made = kept.asWhole(stream);
      if (made !== undefined) {
        changed.streams++;
        expect(plain(await readWhole[format](made))).toEqual(plain(await readStream[format](stream)));
      }
    }
    if (kept.isWhole(JSON.parse(whole))) {
      const made = kept.asStream(whole, true);
      if (made !== undefined) {
        changed.wholes++;
        expect(kept.isWholeStream(made)).toBe(true);
        expect(plain(await readStream[format](made))).toEqual(plain(await readWhole[format](whole)));
      }
    }
  });

  test("most of them can be told in the other form", () => {
    expect(changed.streams).toBeGreaterThan(15);
    expect(changed.wholes).toBeGreaterThan(15);
  });
});

const words = fc.string({ unit: "binary", minLength: 1, maxLength: 30 }).map((text) => text.toWellFormed());
const part = fc.oneof(
  { weight: 3, arbitrary: fc.record({ type: fc.constant("text" as const), text: words }) },
  fc.record({
    type: fc.constant("tool-call" as const),
    id: fc.uuid().map((id) => `call_${id}`),
    name: fc.constantFrom("look", "go"),
    arguments: fc
      .dictionary(fc.string(), fc.oneof(fc.integer(), words), { maxKeys: 3 })
      .map((value) => JSON.stringify(value)),
  }),
);
const answers = fc
  .record({
    // Tool calls end a turn.
    parts: fc
      .array(part, { minLength: 1, maxLength: 4 })
      .map((parts) => parts.sort((left) => (left.type === "text" ? -1 : 1))),
    counts: fc.tuple(fc.nat(1000), fc.nat(1000)),
  })
  .map(({ parts, counts: [input, output] }): GenerationResult => {
    const calls = parts.some(({ type }) => type === "tool-call");
    return {
      id: "",
      model: "m",
      createdAt: 7,
      parts,
      finish: { reason: calls ? "tool-calls" : "stop" },
      usage: { input: { total: input }, output: { total: output } } as GenerationResult["usage"] & object,
    };
  });

const context: AnswerContext = {
  model: "m",
  createdAt: 7,
  nonce: "0123456789abcdef0123456789abcdef",
  request: {
    model: "m",
    system: [],
    messages: [],
    tools: [],
    sampling: {},
    reasoning: {},
    stream: true,
    origin: { protocol: "chat", body: { stream_options: { include_usage: true } } },
    extensions: {},
  },
};

/** The same answer in smaller pieces. */
function inPieces(events: readonly GenerationEvent[], size: number): GenerationEvent[] {
  return events.flatMap((event): GenerationEvent[] => {
    if (event.type !== "delta") return [event];
    const letters = [...event.text];
    const pieces: GenerationEvent[] = [];
    for (let at = 0; at < letters.length; at += size) {
      pieces.push({ ...event, text: letters.slice(at, at + size).join("") });
    }
    return pieces;
  });
}

describe.each(FORMATS)("any answer in %s", (format) => {
  const client = clientProtocol(format);
  const kept = keptOf(format);

  test("reads alike in both forms, and in those made of them", async () => {
    await fc.assert(
      fc.asyncProperty(answers, fc.integer({ min: 1, max: 12 }), async (given, size) => {
        const result =
          format === "completions" ? { ...given, parts: given.parts.filter(({ type }) => type === "text") } : given;
        fc.pre(result.parts.length > 0);
        const whole = JSON.stringify(client.encodeResponse(result, context));
        const encoder = client.streamEncoder(context);
        const stream =
          inPieces(asEvents(result), size)
            .map((event) => encoder.push(event))
            .join("") + encoder.end();
        expect(kept.isWhole(JSON.parse(whole))).toBe(true);
        expect(kept.isWholeStream(stream)).toBe(true);
        const madeWhole = kept.asWhole(stream) as string;
        const madeStream = kept.asStream(whole, true) as string;
        const expected = plain(await readWhole[format](whole));
        expect(plain(await readWhole[format](madeWhole))).toEqual(expected);
        expect(plain(await readStream[format](stream))).toEqual(plain(await readStream[format](madeStream)));
        // There and back nothing is lost.
        expect(plain(JSON.parse(kept.asWhole(madeStream) as string))).toEqual(plain(JSON.parse(whole)));
        expect(plain(await readStream[format](kept.asStream(madeWhole, true) as string))).toEqual(
          plain(await readStream[format](stream)),
        );
        if (format !== "completions") expect(plain(await readStream[format](madeStream))).toEqual(expected);
      }),
      { numRuns: 60 },
    );
  });
});
