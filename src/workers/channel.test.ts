import { afterEach, expect, test } from "bun:test";
import { createDeadlines } from "../lib/deadlines.ts";
import { type Channel, createChannel, type Desk } from "./channel.ts";

const timers: (() => void)[] = [];
afterEach(() => {
  for (const close of timers.splice(0)) close();
});

type Numbers = { double(value: number): number; wait(): Promise<unknown>; note(text: string): void; fail(): never };

/** Two ends of one channel; what is sent is copied, as between processes. */
function pair(desk: Desk, sent: unknown[][] = []) {
  const now = () => performance.now();
  const failures: string[] = [];
  const turns: boolean[] = [];
  const common = { deadlines: createDeadlines(now), now, failed: (name: string) => failures.push(name) };
  let other: Channel<object>;
  const own = createChannel<Numbers>({
    ...common,
    turned: (answers) => void turns.push(answers),
    desk: {},
    send(items) {
      sent.push([...items]);
      queueMicrotask(() => other.received(structuredClone(items)));
    },
  });
  other = createChannel<object>({ ...common, desk, send: (items) => own.received(structuredClone(items)) });
  timers.push(own.close, other.close);
  return { own, failures, turns };
}

test("a call has its answer, and what is said in one turn leaves together, in order", async () => {
  const heard: string[] = [];
  const sent: unknown[][] = [];
  const { own } = pair({ double: (value: number) => value * 2, note: (text: string) => heard.push(text) }, sent);
  own.tell("note", "first");
  const answers = Promise.all([own.call("double", [2]), own.call("double", [21])]);
  own.tell("note", "last");
  expect(await answers).toEqual([4, 42]);
  expect(heard).toEqual(["first", "last"]);
  expect(sent).toHaveLength(1);
  expect(sent[0]).toHaveLength(4);
});

test("nobody waits longer than the limit, nor for an end that is gone", async () => {
  const { own } = pair({ wait: () => new Promise<void>(() => {}) });
  expect(await own.call("wait", [], 50)).toBeUndefined();
  const waiting = own.call("wait", []);
  own.close();
  expect(await waiting).toBeUndefined();
  expect(await own.call("wait", [])).toBeUndefined();
});

test("an end that is too late is told of once, and once when it answers again", async () => {
  const late = Promise.withResolvers<void>();
  const { own, turns } = pair({ wait: () => late.promise, double: (value: number) => value * 2 });
  await Promise.all([own.call("wait", [], 50), own.call("wait", [], 50)]);
  expect(turns).toEqual([false]);
  // Too late for whoever asked.
  late.resolve();
  await Bun.sleep(0);
  expect(turns).toEqual([false]);
  expect(await own.call("double", [1])).toBe(2);
  expect(turns).toEqual([false, true]);
});

test("what throws is told, and answered with nothing; names that nobody knows are no way in", async () => {
  const { own, failures } = pair({
    fail() {
      throw new Error("a bug");
    },
  });
  expect(await own.call("fail", [])).toBeUndefined();
  expect(await own.call("toString" as "fail", [])).toBeUndefined();
  expect(failures).toEqual(["fail", "toString"]);
});
