import { expect, test } from "bun:test";
import type { SlotEnd, SlotQuery } from "./admission.ts";
import { readEnvelope } from "./envelope.ts";
import type { FromOwner, ToOwner } from "./remote-admission.ts";

const ASK: SlotQuery = {
  ...{ group: "a\nb", model: "m", class: "default", tenant: ["o", ""], inputTokens: 1, outputTokens: 2 },
  ...{ ageMs: 0.5, patienceMs: 1_000, goesFirst: false },
};
const END: SlotEnd = { durationMs: 5, stream: true, isOverload: false, inputTokens: undefined, firstByteMs: 1 };
const MESSAGES: (ToOwner | FromOwner)[] = [
  { kind: "take", id: 1, backend: "a", ask: ASK },
  { kind: "wait", id: 2, backends: ["a", "b"], ask: ASK },
  { kind: "mayUse", id: 2, backends: [] },
  { kind: "leave", id: 2 },
  { kind: "streamed", tokens: [[1, 20]] },
  { kind: "ended", id: 1, end: END },
  { kind: "ended", id: 1, end: undefined },
  { kind: "holds", id: 3, backend: "b", ask: ASK },
  { kind: "granted", id: 1, backend: undefined },
  { kind: "granted", id: 1, backend: "a" },
  { kind: "shed", id: 2, shed: { reason: "too_late", retryAfterMs: 1_000, waiting: 3 } },
  { kind: "room", backend: "a", isFull: true },
];
const ENVELOPE = { from: "x", generation: 1_795_724_070_809, session: 1, number: 0, sentMs: 1.5, messages: MESSAGES };

test("every message is read as it was written", () => {
  const read = readEnvelope(JSON.stringify(ENVELOPE));
  expect(read as unknown).toEqual(JSON.parse(JSON.stringify(ENVELOPE)));
});

test.each([
  ...["", "{", "null", "[]", "7"],
  ...["from", "generation", "session", "number", "sentMs", "messages"].map((name) =>
    JSON.stringify({ ...ENVELOPE, [name]: null }),
  ),
  ...[
    null,
    {},
    { kind: "other", id: 1 },
    { kind: "leave", id: "1" },
    { kind: "take", id: 1, backend: "a" },
    { kind: "take", id: 1, backend: "a", ask: { ...ASK, inputTokens: "1" } },
    { kind: "wait", id: 1, backends: [1], ask: ASK },
    { kind: "wait", id: 1, backends: ["a"], ask: { ...ASK, tenant: "o" } },
    { kind: "streamed", tokens: [["1", 2]] },
    { kind: "ended", id: 1, end: { ...END, durationMs: null } },
    { kind: "granted", id: 1, backend: 1 },
    { kind: "shed", id: 1 },
    { kind: "room" },
  ].map((message) => JSON.stringify({ ...ENVELOPE, messages: [message] })),
])("%s is no envelope", (text) => {
  expect(readEnvelope(text)).toBeUndefined();
});
