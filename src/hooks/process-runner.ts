// Runs the hooks of one module in a process: started, called within a time, ended when it loops or grows, and started again.

import type { Deadline, Deadlines } from "../lib/deadlines.ts";
import { signalGroup } from "../lib/process-group.ts";
import type { HookAnswer } from "./define.ts";
import { countHolders } from "./holders.ts";
import { type HookOutcome, type HookRunner, MAX_CALLS, MAX_HELD_BYTES, refusedAnswer } from "./hook-runner.ts";
import type { FromHost, HookCall, HostedHook, LoadedHook, ToHost } from "./hook-wire.ts";
import { HOOK_MARK } from "./mark.ts";

/** The module has this time to load. */
const START_LIMIT_MS = 10_000;
/** A process that does not answer a ping for so long, after a call was late, loops. */
const PING_LIMIT_MS = 250;
/** Of one call. */
const OVERHEAD_BYTES = 1_024;
/** Questions of one call that are under way: each is a request to a model. */
const MAX_ASKS = 16;
/** After so many processes that did not come up, nothing waits for the next one. */
const MAX_STARTS = 2;
const NO_PROCESS: HookOutcome = { error: "unavailable", message: "its process does not start" };
/** A process that lived so long may be replaced at once. */
const LIVED_MS = 2_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
/** A call whose process died under it, perhaps by the fault of another call, is made once more. */
const MAX_RUNS = 2;

export type RestartCause = "memory" | "hang" | "crash";

interface ProcessRunnerParts {
  command: readonly string[];
  env: Record<string, string | undefined>;
  cwd: string;
  hooks: readonly HostedHook[];
  maxBytes: number;
  deadlines: Deadlines;
  now(): number;
  log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  restarted(hook: string, cause: RestartCause): void;
  /** A hook could not be loaded, or is loaded. */
  loaded(hook: LoadedHook): void;
}

interface WaitingCall extends Deadline {
  id: number;
  call: HookCall;
  bytes: number;
  timeoutMs: number;
  runs: number;
  ask(operation: string, body: string): Promise<HookAnswer>;
  /** Questions under way. */
  asks: number;
  resolve(outcome: HookOutcome): void;
}

interface Host {
  process: Bun.Subprocess;
  startedAtMs: number;
  isReady: boolean;
  /** Why the gateway ends it. */
  cause: RestartCause | undefined;
  ping: Deadline | undefined;
}

// Long because these functions share the process and the calls under way.
export function createProcessRunner(parts: ProcessRunnerParts): HookRunner {
  const { command, env, cwd, hooks, maxBytes, deadlines, now, log, restarted } = parts;
  const pending = new Map<number, WaitingCall>();
  let heldBytes = 0;
  let lastId = 0;
  let host: Host | undefined;
  let isStopped = false;
  let failures = 0;
  let timer: Timer | undefined;
  let ready = Promise.withResolvers<ReadonlyMap<string, LoadedHook> | undefined>();
  const names = hooks.map(({ name }) => name).join(", ");

  function start(): void {
    timer = undefined;
    const startedAtMs = now();
    const spawned = Bun.spawn([...command], {
      cwd,
      env: { ...env, [HOOK_MARK]: String(maxBytes) },
      // What a module prints is no line of the log, and in agent mode no message.
      stdio: ["ignore", 2, 2],
      // A process group of its own: what the module has started ends with it, and Ctrl-C in a terminal does not end it before the
      // requests that need it.
      detached: true,
      serialization: "advanced",
      ipc: (message) => received(started, message as FromHost),
      onExit: (_, exitCode, signal) => ended(started, exitCode, signal as string | number | null),
    });
    const started: Host = { process: spawned, startedAtMs, isReady: false, cause: undefined, ping: undefined };
    host = started;
    send(started, { kind: "start", hooks });
    const limit: Deadline = {
      deadlineMs: now() + START_LIMIT_MS,
      expire: () => {
        if (!started.isReady) end(started, "hang");
      },
    };
    deadlines.add(limit);
    void spawned.exited.then(() => deadlines.remove(limit));
  }

  function send({ process }: Host, message: ToHost): void {
    try {
      process.send(message);
    } catch {
      kill(process);
    }
  }

  function kill({ pid }: Bun.Subprocess): void {
    signalGroup(pid, "SIGKILL");
  }

  function end(ended: Host, cause: RestartCause): void {
    ended.cause ??= cause;
    kill(ended.process);
  }

  function received(from: Host, message: FromHost): void {
    if (from !== host) return;
    switch (message.kind) {
      case "ready":
        from.isReady = true;
        failures = 0;
        for (const hook of message.hooks) parts.loaded(hook);
        ready.resolve(new Map(message.hooks.map((hook) => [hook.name, hook])));
        for (const call of pending.values()) run(from, call);
        return;
      case "pong":
        if (from.ping !== undefined) deadlines.remove(from.ping);
        from.ping = undefined;
        return;
      case "verdict":
        settle(message.id, { verdict: message.verdict });
        return;
      case "failed":
        settle(message.id, { error: "error", message: message.message, thrown: message.thrown });
        return;
      case "ask":
        void answerAsk(from, message);
        return;
    }
  }

  async function answerAsk(from: Host, { id, call, operation, body }: FromHost & { kind: "ask" }): Promise<void> {
    const asker = pending.get(call);
    let answer = refusedAnswer(408, "the call is over");
    if (asker !== undefined && asker.asks >= MAX_ASKS) answer = refusedAnswer(429, "too many questions are under way");
    else if (asker !== undefined) {
      asker.asks++;
      answer = await asker.ask(operation, body);
      asker.asks--;
    }
    if (from === host) send(from, { kind: "asked", id, answer });
  }

  /** What the calls of a process that has ended come to. */
  function ended(gone: Host, exitCode: number | null, signal: string | number | null): void {
    if (gone.ping !== undefined) deadlines.remove(gone.ping);
    kill(gone.process); // what the module has started
    if (gone !== host) return;
    host = undefined;
    if (isStopped) return;
    const cause = gone.cause ?? (signal === "SIGVTALRM" || signal === 26 ? "memory" : "crash");
    if (gone.isReady) ready = Promise.withResolvers();
    for (const call of [...pending.values()]) {
      deadlines.remove(call);
      if (call.runs >= MAX_RUNS) settle(call.id, { error: "error", message: CAUSES[cause] });
    }
    for (const { name } of hooks) restarted(name, cause);
    log.warn({ hooks: names, cause, exit_code: exitCode, signal }, `the process of hooks was ended: ${CAUSES[cause]}`);
    failures = gone.isReady ? 0 : failures + 1;
    const hasLived = now() - gone.startedAtMs > LIVED_MS;
    const pauseMs = Math.min(hasLived ? 0 : FIRST_PAUSE_MS * 2 ** Math.max(0, failures - 1), LONGEST_PAUSE_MS);
    if (failures >= MAX_STARTS) giveUp();
    timer = setTimeout(start, pauseMs);
  }

  /** Nothing waits for a process that does not come up. */
  function giveUp(): void {
    ready.resolve(undefined);
    ready = Promise.withResolvers();
    for (const id of [...pending.keys()]) settle(id, NO_PROCESS);
  }

  function run(to: Host, call: WaitingCall): void {
    call.runs++;
    call.deadlineMs = now() + call.timeoutMs;
    deadlines.add(call);
    send(to, { kind: "call", id: call.id, call: tight(call.call) });
  }

  function settle(id: number, outcome: HookOutcome): void {
    const call = pending.get(id);
    if (call === undefined) return; // a late verdict
    pending.delete(id);
    deadlines.remove(call);
    heldBytes -= call.bytes;
    call.resolve(outcome);
  }

  /** Either the call waits for something, or the process loops: then it answers nothing. */
  function late(id: number): void {
    settle(id, { error: "timeout", message: "no verdict in time" });
    const asked = host;
    if (asked === undefined || asked.ping !== undefined) return;
    asked.ping = { deadlineMs: now() + PING_LIMIT_MS, expire: () => end(asked, "hang") };
    deadlines.add(asked.ping);
    send(asked, { kind: "ping" });
  }

  function stop(): void {
    isStopped = true;
    clearTimeout(timer);
    giveUp();
    if (host !== undefined) kill(host.process);
  }

  start();
  return {
    ...countHolders(stop),
    ready: (name) =>
      (failures >= MAX_STARTS ? Promise.resolve(undefined) : ready.promise).then((loaded) => loaded?.get(name)),
    call(call, timeoutMs, ask) {
      const bytes = OVERHEAD_BYTES + (call.data.body?.length ?? 0) + (call.data.text?.length ?? 0);
      if (isStopped || failures >= MAX_STARTS) return Promise.resolve(NO_PROCESS);
      if (pending.size >= MAX_CALLS || heldBytes + bytes > MAX_HELD_BYTES) {
        return Promise.resolve({ error: "unavailable", message: "too many calls are under way" });
      }
      const { promise, resolve } = Promise.withResolvers<HookOutcome>();
      const id = ++lastId;
      heldBytes += bytes;
      const waiting: WaitingCall = {
        id,
        call,
        bytes,
        timeoutMs,
        runs: 0,
        asks: 0,
        ask,
        resolve,
        deadlineMs: 0,
        expire: () => late(id),
      };
      pending.set(id, waiting);
      if (host?.isReady) run(host, waiting);
      return promise;
    },
    get waiting() {
      return pending.size;
    },
    stop,
  };
}

/** A view of a part of a buffer would be sent with all of it. */
function tight(call: HookCall): HookCall {
  const { body } = call.data;
  if (body === undefined || body.byteLength === body.buffer.byteLength) return call;
  return { ...call, data: { ...call.data, body: body.slice() } };
}

const CAUSES: Readonly<Record<RestartCause, string>> = {
  memory: "it took more memory than max_memory",
  hang: "it did not answer",
  crash: "it has ended by itself",
};
