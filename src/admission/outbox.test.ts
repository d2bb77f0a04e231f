import { expect, test } from "bun:test";
import { createOutbox } from "./outbox.ts";

/** Envelopes that have gone; each is under way until the test lets it arrive. */
function scripted() {
  const sent: { number: number; messages: readonly string[]; arrive(): void }[] = [];
  const outbox = createOutbox<string>((number, messages) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    sent.push({ number, messages: [...messages], arrive: resolve });
    return promise;
  });
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
  return { outbox, sent, turn, seen: () => sent.map(({ number, messages }) => [number, messages.length]) };
}

test("one envelope is under way at a time, with what has gathered meanwhile", async () => {
  const { outbox, sent, turn } = scripted();
  outbox.push("a");
  outbox.push("b");
  await turn();
  outbox.push("c");
  outbox.push("d");
  await turn();
  expect(sent.map(({ messages }) => messages)).toEqual([["a", "b"]]);
  sent[0]?.arrive();
  await turn();
  expect(sent.map(({ number, messages }) => [number, ...messages])).toEqual([
    [0, "a", "b"],
    [1, "c", "d"],
  ]);
});

test("a beat is an envelope, empty where nothing waits", async () => {
  const { outbox, sent, turn, seen } = scripted();
  outbox.beat();
  await turn();
  sent[0]?.arrive();
  outbox.push("a");
  outbox.beat();
  await turn();
  sent[1]?.arrive();
  await turn();
  expect(seen()).toEqual([
    [0, 0],
    [1, 1],
  ]);
  outbox.close();
  outbox.push("b");
  await turn();
  expect(sent).toHaveLength(2);
});

test("too many messages are lost together, and a number is missing", async () => {
  const { outbox, sent, turn, seen } = scripted();
  outbox.push("a");
  await turn();
  for (let count = 0; count < 20_001; count++) outbox.push("more");
  sent[0]?.arrive();
  await turn();
  expect(seen()).toEqual([
    [0, 1],
    [2, 1],
  ]);
});
