import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readEvents } from "../protocols/sse.ts";
import { redactBody } from "./redact-body.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const textOf = (body: ReturnType<typeof redactBody>) => new TextDecoder().decode(body?.content);

const SECRET = "bob.smith@example.org";

/** The text in pieces, cut at these places. */
function piecesOf(text: string, cuts: readonly number[]): string[] {
  const places = [0, ...[...new Set(cuts.map((cut) => cut % text.length))].sort((a, b) => a - b), text.length];
  return places.slice(1).map((place, index) => text.slice(places[index], place));
}

const cuts = fc.array(fc.nat(), { maxLength: 12 });
const TEXT = `Ask ${SECRET} or call +44 20 7946 0958. Done.`;
const EXPECTED = "Ask [redacted email] or call [redacted phone]. Done.";

describe("a redacted body", () => {
  test("is the same body where there is nothing to take out", () => {
    const body = bytes('{ "messages": [{"role":"user","content":"Hello!"}], "n": 1.0 }');
    const read = redactBody(body, "application/json");
    expect(read?.content).toBe(body);
    expect(read?.value).toEqual(JSON.parse(new TextDecoder().decode(body)));
  });

  test("has placeholders at any depth, and its pictures", () => {
    const picture = "A1".repeat(2_000);
    const value = {
      messages: [{ content: [{ text: TEXT }, { image_url: { url: `data:image/png;base64,${picture}` } }] }],
    };
    const redacted = redactBody(bytes(JSON.stringify(value)), "application/json");
    const read = JSON.parse(textOf(redacted));
    expect(redacted?.value).toEqual(read);
    expect(read.messages[0].content).toEqual([{ text: EXPECTED }, value.messages[0]?.content[1]]);
  });

  test("is not kept where it cannot be read", () => {
    expect(redactBody(bytes(`{"content": "${SECRET}`), "application/json")).toBeUndefined();
    expect(redactBody(bytes(`--b\r\n\r\n${SECRET}`), "multipart/form-data; boundary=b")).toBeUndefined();
  });

  test("reads the deltas of a stream together, wherever they were cut", () => {
    fc.assert(
      fc.property(cuts, (places) => {
        const chunk = (content: string) =>
          `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
        const stream = `${piecesOf(TEXT, places).map(chunk).join("")}data: [DONE]\n\n`;
        const redacted = textOf(redactBody(bytes(stream), "text/event-stream"));
        const events = readEvents(redacted).map(({ data }) => data);
        expect(events.at(-1)).toBe("[DONE]");
        const texts = events.slice(0, -1).map((data) => JSON.parse(data).choices[0].delta.content);
        expect(texts.join("")).toBe(EXPECTED);
      }),
    );
  });

  test("keeps texts of several parts apart, and the names of events", () => {
    const event = (index: number, text: string) =>
      `event: content_block_delta\ndata: ${JSON.stringify({ type: "content_block_delta", index, delta: { text } })}\n\n`;
    const stream = event(0, "bob@exam") + event(1, "nothing here") + event(0, "ple.org");
    const redacted = textOf(redactBody(bytes(stream), "text/event-stream; charset=utf-8"));
    expect(readEvents(redacted).map(({ name, data }) => [name, JSON.parse(data).delta.text])).toEqual([
      ["content_block_delta", "[redacted email]"],
      ["content_block_delta", "nothing here"],
      ["content_block_delta", ""],
    ]);
  });

  test("reads lines and lists of chunks as streams, and leaves out what was cut", () => {
    fc.assert(
      fc.property(cuts, (places) => {
        const chunks = piecesOf(TEXT, places).map((content) => ({ message: { content } }));
        const lines = chunks.map((chunk) => `${JSON.stringify(chunk)}\n`).join("");
        const ofLines = textOf(redactBody(bytes(`${lines}{"message":{"content":"x@y`), "application/x-ndjson"));
        const values = ofLines
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line));
        const list = JSON.parse(textOf(redactBody(bytes(JSON.stringify(chunks)), "application/json")));
        for (const told of [values, list]) {
          expect(told.map(({ message }: (typeof chunks)[number]) => message.content).join("")).toBe(EXPECTED);
        }
      }),
    );
  });

  test("has placeholders in texts that stand alone, in lines that are no JSON as well", () => {
    const redact = (text: string, contentType: string) => textOf(redactBody(bytes(text), contentType));
    const [quoted, expected] = [TEXT, EXPECTED].map((text) => JSON.stringify(text));
    expect(redact(`${quoted}`, "application/json")).toBe(`${expected}`);
    expect(redact(`[1, ${quoted}]`, "application/json")).toBe(`[1,${expected}]`);
    expect(redact(`${quoted}\n{"n":1}\n${TEXT}\n`, "application/jsonl")).toBe(`${expected}\n{"n":1}\n${EXPECTED}\n`);
  });
});
