import { expect, test } from "bun:test";
import type { SlotQuery } from "./admission.ts";
import { OwnerGate } from "./owner-gate.ts";
import type { ToOwner } from "./remote-admission.ts";

const ASK: SlotQuery = {
  ...{ group: "g", model: "m", class: "default", tenant: [], inputTokens: 1, outputTokens: 1 },
  ...{ ageMs: 0, patienceMs: 1_000, goesFirst: false },
};

function desk() {
  const heard: ToOwner[] = [];
  return { heard: (message: ToOwner) => void heard.push(message), messages: heard };
}

const wait = (id: number, ageMs: number, goesFirst = false): ToOwner => ({
  ...{ kind: "wait", id, backends: ["gpu"] },
  ask: { ...ASK, ageMs, goesFirst },
});

test("what is asked is kept until all have said what they have, and answered by age then; slots count at once", () => {
  let nowMs = 0;
  const gate = new OwnerGate(["one", "two"], 60_000, () => nowMs);
  const own = desk();
  const other = desk();
  gate.heard(own, wait(1, 10));
  gate.heard(own, { kind: "leave", id: 1 });
  gate.heard(own, { kind: "take", id: 2, backend: "gpu", ask: ASK });
  nowMs = 100;
  gate.heard(other, wait(3, 500));
  gate.heard(other, wait(4, 0, true));
  gate.heard(other, wait(5, 105));
  gate.heard(other, { kind: "holds", id: 6, backend: "gpu", ask: ASK });
  gate.heard(other, { kind: "ended", id: 6, end: undefined });
  gate.toldBy("one");
  expect(own.messages).toEqual([]);
  expect(other.messages.map(({ kind }) => kind)).toEqual(["holds", "ended"]);
  gate.toldBy("two");
  const later = { ageMs: 100, patienceMs: 900 };
  expect(own.messages).toEqual([
    { kind: "wait", id: 1, backends: ["gpu"], ask: { ...ASK, ...later, ageMs: 110 } },
    { kind: "leave", id: 1 },
    { kind: "take", id: 2, backend: "gpu", ask: { ...ASK, ...later } },
  ]);
  expect(other.messages.slice(2).map((message) => "id" in message && message.id)).toEqual([4, 3, 5]);
  gate.heard(own, wait(7, 0));
  expect(own.messages).toHaveLength(4);
});

test("those that say nothing are not waited for longer than the limit", async () => {
  const gate = new OwnerGate(["one"], 1, () => 0);
  const { promise, resolve } = Promise.withResolvers<ToOwner>();
  gate.heard({ heard: resolve }, wait(1, 0));
  expect(await promise).toMatchObject({ kind: "wait", id: 1 });
});

test("what a gateway asked that is gone is asked no more", () => {
  const gate = new OwnerGate(["one"], 60_000, () => 0);
  const gone = desk();
  gate.heard(gone, wait(1, 0));
  gate.forget(gone);
  gate.open();
  expect(gone.messages).toEqual([]);
});
