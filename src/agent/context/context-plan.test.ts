// Long conversations: what of them is sent.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { checkHistory } from "../../../test/support/agent-turns.ts";
import type { Message } from "../../generation/content.ts";
import { MessageSizes, planContext, plannedMessages } from "./context-plan.ts";
import { tokensOfMessage } from "./token-estimate.ts";

const says = (role: Message["role"], length: number): Message => ({
  role,
  parts: [{ type: "text", text: "w".repeat(length) }],
});

let ids = 0;
/** What a model called in one answer, and the results. */
function step(lengths: readonly number[], withImage = false): Message[] {
  const calls = lengths.map((length) => ({ id: `c${ids++}`, length }));
  return [
    { role: "assistant", parts: calls.map(({ id }) => ({ type: "tool-call", id, name: "t", arguments: "{}" })) },
    {
      role: "user",
      parts: calls.map(({ id, length }) => ({
        type: "tool-result",
        callId: id,
        parts: [
          { type: "text", text: "r".repeat(length) },
          ...(withImage
            ? [{ type: "image" as const, source: { kind: "base64" as const, mediaType: "image/png", data: "" } }]
            : []),
        ],
      })),
    },
  ];
}

const lengths = fc.array(fc.oneof(fc.nat(300), fc.nat(30_000)), { minLength: 1, maxLength: 4 });
const exchange = fc
  .record({
    prompt: fc.nat(400),
    steps: fc.array(fc.tuple(lengths, fc.boolean()), { maxLength: 5 }),
    answer: fc.option(fc.nat(2_000), { nil: undefined }),
  })
  .map(({ prompt, steps, answer }) => [
    says("user", prompt + 1),
    ...steps.flatMap(([each, withImage]) => step(each, withImage)),
    ...(answer === undefined ? [] : [says("assistant", answer + 1)]),
  ]);
const conversation = fc.array(exchange, { minLength: 1, maxLength: 6 }).map((exchanges) => {
  const messages = exchanges.flat();
  // As a model is asked: behind a prompt or results.
  while (messages.at(-1)?.role === "assistant") messages.pop();
  return messages.length === 0 ? [says("user", 1)] : messages;
});

const sent = (messages: readonly Message[], limit: number) =>
  plannedMessages(messages, planContext(messages, limit, new MessageSizes()));
const tokens = (messages: readonly Message[]) => messages.reduce((sum, each) => sum + tokensOfMessage(each), 0);

/** What the note about what was left out takes. */
const NOTE_TOKENS = 30;

describe("any conversation", () => {
  test("fits when that is possible, keeps its pairs, begins with the user and ends with its newest message", () => {
    fc.assert(
      fc.property(conversation, fc.integer({ min: 800, max: 40_000 }), (messages, limit) => {
        const before = structuredClone(messages);
        const planned = sent(messages, limit);
        checkHistory(planned);
        expect(messages).toEqual(before);
        expect(planned[0]?.role).toBe("user");
        expect(
          planned
            .at(-1)
            ?.parts.map(({ type }) => type)
            .at(-1),
        ).toBe(messages.at(-1)?.parts.at(-1)?.type as "text");
        // A prompt, and calls with four results of the shortest form, take less than the least limit.
        expect(tokens(planned)).toBeLessThanOrEqual(limit + NOTE_TOKENS);
      }),
      { numRuns: 300 },
    );
  });

  test("that fits is sent as it is", () => {
    fc.assert(
      fc.property(conversation, (messages) => {
        expect(sent(messages, Number.POSITIVE_INFINITY)).toEqual(messages);
        expect(sent(messages, tokens(messages))).toEqual(messages);
      }),
      { numRuns: 100 },
    );
  });

  test("counts what it sends", () => {
    fc.assert(
      fc.property(conversation, fc.integer({ min: 800, max: 40_000 }), (messages, limit) => {
        const plan = planContext(messages, limit, new MessageSizes());
        const counted = tokens(plannedMessages(messages, plan));
        expect(Math.abs(counted - plan.tokens)).toBeLessThanOrEqual(NOTE_TOKENS);
      }),
      { numRuns: 200 },
    );
  });
});

test("the beginning of what is sent changes in steps only", () => {
  const messages: Message[] = [says("user", 100)];
  let changes = 0;
  let before: Message[] = [];
  for (let count = 0; count < 200; count++) {
    messages.push(...step([4_000]));
    const now = sent(messages, 20_000);
    if (!Bun.deepEquals(now.slice(0, before.length), before)) changes++;
    before = now;
  }
  // A step adds about 1,000 tokens; 8,000 are freed at once.
  expect(changes).toBeGreaterThan(5);
  expect(changes).toBeLessThan(40);
});

test("the oldest results become short first, and nothing else", () => {
  const messages = [says("user", 10), ...step([8_000]), ...step([8_000]), ...step([8_000])];
  const planned = sent(messages, 5_000);
  const sizes = planned.map(tokensOfMessage);
  expect(planned).toHaveLength(messages.length);
  expect(sizes[2]).toBeLessThan(200);
  expect(sizes.at(-1)).toBeGreaterThan(2_000);
  expect(JSON.stringify(planned[2])).toContain("characters were left out to save room");
});

test("then the oldest exchanges go, then the oldest steps of the one that goes on, and the model is told", () => {
  const old = [says("user", 4_000), says("assistant", 4_000)];
  const messages = [...old, ...old, says("user", 400), ...step([100]), says("assistant", 6_000), says("user", 10)];
  const planned = sent(messages, 2_500);
  expect(planned[0]?.parts).toMatchObject([
    { text: expect.stringContaining("were left out") },
    { text: "w".repeat(10) },
  ]);
  const going = [says("user", 400), ...[...Array(30)].flatMap(() => step([500]))];
  const kept = sent(going, 2_000);
  expect(kept[0]?.parts.at(-1)).toEqual({ type: "text", text: "w".repeat(400) });
  expect(kept.length).toBeLessThan(going.length);
  expect(kept.at(-1)).toEqual(going.at(-1) as Message);
  checkHistory(kept);
});
