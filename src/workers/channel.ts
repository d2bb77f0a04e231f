// What the primary and a worker say to each other: calls and messages, in order, gathered for a turn of the event loop.

import type { Deadline, Deadlines } from "../lib/deadlines.ts";

/** What one side does for the other, by name. Arguments and results are plain data. */
// biome-ignore lint/suspicious/noExplicitAny: the parameters of any function
export type Desk = Record<string, (...given: any[]) => unknown>;

type Item =
  | { kind: "call"; id: number; name: string; given: readonly unknown[] }
  | { kind: "tell"; name: string; given: readonly unknown[] }
  | { kind: "answer"; id: number; value: unknown };

/** The longest wait for an answer of the other side. */
const CALL_LIMIT_MS = 1_000;

interface ChannelParts {
  /** Throws when the other side is gone. */
  send(items: readonly Item[]): void;
  desk: Desk;
  deadlines: Deadlines;
  now(): number;
  /** A desk has thrown: a bug. */
  failed(name: string, error: unknown): void;
  /** The other side has not answered in time, or answers again. */
  turned?(answers: boolean): void;
}

interface Pending extends Deadline {
  resolve(value: unknown): void;
}

export interface Channel<Theirs> {
  /** Undefined when there is no answer in time: a wait is bounded, whatever has become of the other side. */
  call<Name extends keyof Theirs & string>(
    name: Name,
    given: MethodArguments<Theirs, Name>,
    limitMs?: number,
  ): Promise<MethodResult<Theirs, Name> | undefined>;
  /** With the other messages of this turn. */
  tell<Name extends keyof Theirs & string>(name: Name, ...given: MethodArguments<Theirs, Name>): void;
  /** What has been told so far leaves now. */
  flush(): void;
  received(items: unknown): void;
  /** The other side is gone: all waits end. */
  close(): void;
}

type MethodArguments<Theirs, Name extends keyof Theirs> = Theirs[Name] extends (...given: infer Args) => unknown
  ? Args
  : never;
type MethodResult<Theirs, Name extends keyof Theirs> = Theirs[Name] extends (...given: never[]) => infer Value
  ? Awaited<Value>
  : never;

export function createChannel<Theirs>({ send, desk, deadlines, now, failed, turned }: ChannelParts): Channel<Theirs> {
  const pending = new Map<number, Pending>();
  let queue: Item[] = [];
  let isPlanned = false;
  let isClosed = false;
  let isLate = false;
  let lastId = 0;

  function flush(): void {
    isPlanned = false;
    if (queue.length === 0 || isClosed) return;
    const items = queue;
    queue = [];
    try {
      send(items);
    } catch {
      close();
    }
  }

  function put(item: Item): void {
    if (isClosed) return;
    queue.push(item);
    if (isPlanned) return;
    isPlanned = true;
    setImmediate(flush);
  }

  function settle(id: number, value: unknown): void {
    const waiting = pending.get(id);
    if (waiting === undefined) return;
    pending.delete(id);
    deadlines.remove(waiting);
    waiting.resolve(value);
  }

  function isNowLate(next: boolean): void {
    if (isLate === next) return;
    isLate = next;
    turned?.(!next);
  }

  function close(): void {
    isClosed = true;
    queue = [];
    for (const id of [...pending.keys()]) settle(id, undefined);
  }

  async function run(name: string, given: readonly unknown[]): Promise<unknown> {
    const method = Object.hasOwn(desk, name) ? desk[name] : undefined;
    if (method === undefined) throw new Error(`no method ${name} here`);
    return await method(...given);
  }

  function take(item: Item): void {
    if (item.kind === "answer") {
      // A late answer says nothing about the calls that still wait.
      if (pending.has(item.id)) isNowLate(false);
      settle(item.id, item.value);
      return;
    }
    const { name, given } = item;
    void run(name, given)
      .catch((error) => {
        failed(name, error);
        return undefined;
      })
      .then((value) => {
        if (item.kind === "call") put({ kind: "answer", id: item.id, value });
      });
  }

  return {
    call(name, given, limitMs = CALL_LIMIT_MS) {
      if (isClosed) return Promise.resolve(undefined);
      const { promise, resolve } = Promise.withResolvers<unknown>();
      const id = ++lastId;
      const expire = () => {
        isNowLate(true);
        settle(id, undefined);
      };
      const waiting: Pending = { deadlineMs: now() + limitMs, resolve, expire };
      pending.set(id, waiting);
      deadlines.add(waiting);
      put({ kind: "call", id, name, given });
      return promise as Promise<never>;
    },
    tell: (name, ...given) => put({ kind: "tell", name, given }),
    flush,
    received(items) {
      if (isClosed || !Array.isArray(items)) return; // what was under way there is settled
      for (const item of items as Item[]) take(item);
    },
    close,
  };
}

/** For what takes as long as it takes. */
export const NO_LIMIT_MS = Number.POSITIVE_INFINITY;
