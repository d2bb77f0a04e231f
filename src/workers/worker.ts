// A worker: answers requests on the shared port by what its primary tells it, and tells the primary what became of them.

import { rmSync } from "node:fs";
import { dirname } from "node:path";
import type { FromOwner } from "../admission/remote-admission.ts";
import type { KvNews } from "../kv-index/kv-teller.ts";
import { systemClock } from "../lib/clock.ts";
import { createDeadlines } from "../lib/deadlines.ts";
import { otherWork } from "../lib/other-work.ts";
import { drain } from "../runtime/shutdown.ts";
import { listen, type Server } from "../server/listener.ts";
import { type Channel, createChannel, type Desk } from "./channel.ts";
import type { Load, PrimaryDesk, Start, Started, State, WorkerDesk } from "./messages.ts";
import { createWorker, type Worker } from "./worker-plane.ts";

const CLOCK_ROUNDS = 8;
const LAST_WORDS_MS = 2_000;
const SILENT_PRIMARY =
  "the primary does not answer in time: meanwhile limits let requests in, and nothing is found in the cache";
const QUIET_TURNS = 1_000;
const QUIET_MS = 0.2;

/** Resolves with the exit code when it has been drained. */
export function runWorker(env: Record<string, string | undefined>): Promise<number> {
  const { promise: exited, resolve: exit } = Promise.withResolvers<number>();
  let running: RunningWorker | undefined;
  let starting: Promise<unknown> = Promise.resolve();
  let folder: string | undefined;
  /** What is heard before it serves holds from its first request on, in the order in which it came. */
  function whenRunning<Value>(act: (worker: RunningWorker) => Value): Value | Promise<Value> {
    return running === undefined ? starting.then(() => act(running as RunningWorker)) : act(running);
  }
  const desk = {
    async start(start: Start): Promise<Started> {
      folder = dirname(start.socket);
      const begun = startServing(start, channel, env);
      starting = begun.then((result) => {
        if ("problem" in result) return new Promise(() => {}); // it is about to be ended
        running = result;
      });
      const result = await begun;
      return "problem" in result ? result : { problem: undefined };
    },
    /** At once, so that it is in force before the next message is read. */
    follow: (state: State) =>
      whenRunning((worker) => {
        worker.follow(state);
        return true as const;
      }),
    ping: () => true as const,
    loads: (loads: Load[]) => whenRunning((worker) => worker.heard(loads)),
    kvNews: (news: KvNews) => whenRunning(({ kvIndex }) => kvIndex.heard(news)),
    admission: (message: FromOwner) => running?.admission(message),
    forgetKvCaches: (backendName: string | undefined) =>
      whenRunning(({ kvIndex }) => {
        kvIndex.forget(backendName);
        return true as const;
      }),
    flush() {
      running?.tell();
      return true as const;
    },
    drain(timeoutMs: number, leavingMs: number): void {
      void Promise.resolve(running?.end(timeoutMs, leavingMs)).then(() => exit(0));
    },
  } satisfies Record<keyof WorkerDesk, unknown>;
  const channel = createChannel<PrimaryDesk>({
    send: (items) => void process.send?.(items),
    desk: desk as Desk,
    deadlines: createDeadlines(systemClock.now),
    now: systemClock.now,
    failed: (name, err) => running?.log.error({ err, message: name }, "a message of the primary could not be handled"),
    turned(answers) {
      if (answers) running?.log.info("the primary answers again");
      else running?.log.warn(SILENT_PRIMARY);
    },
  });
  process.on("message", (items) => channel.received(items));
  // Without its owner nothing that it says is true.
  process.on("disconnect", () => {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    process.exit(1);
  });
  if (process.connected === false) process.exit(1); // it has died before there was a listener
  // Signals to all processes of a terminal or a service are for the primary, which tells when to end.
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => {});
  return exited;
}

interface RunningWorker extends Omit<Worker, "served" | "leave" | "closing" | "watch" | "stop"> {
  end(timeoutMs: number, leavingMs: number): Promise<void>;
}

async function startServing(
  start: Start,
  channel: Channel<PrimaryDesk>,
  env: Record<string, string | undefined>,
): Promise<RunningWorker | { problem: string }> {
  const worker = createWorker(start, channel, env, await clockOffset(channel));
  const servers: Server[] = [];
  for (const address of start.addresses) {
    const result = await listen(address, start.snapshot.baseDir, worker.served, undefined, true);
    if (!result.ok) {
      await Promise.all(servers.map((server) => server.stop(true)));
      return { problem: result.message };
    }
    servers.push(result.server);
  }
  worker.watch(() => servers.reduce((sum, server) => sum + server.pendingRequests, 0));
  return {
    ...worker,
    async end(timeoutMs, leavingMs) {
      worker.leave();
      await Bun.sleep(leavingMs);
      if (leavingMs > 0) await quietMoment();
      const drained = drain(servers, timeoutMs, { ...worker.log, info() {} });
      // End the /admin/events streams: their clients connect again, to another worker.
      worker.closing();
      await drained;
      await worker.stop();
      // Messages before this one have arrived when its answer is here.
      await channel.call("clock", [], LAST_WORDS_MS);
    },
  };
}

/**
 * Resolves behind a turn of the event loop that had little to do: what has connected has been seen a moment ago. The kernel
 * resets the connections that it has taken by the time when a port is closed, and this process has not.
 */
async function quietMoment(): Promise<void> {
  for (let turn = 0; turn < QUIET_TURNS; turn++) {
    const begunMs = systemClock.now();
    await otherWork();
    if (systemClock.now() - begunMs < QUIET_MS) return;
  }
}

/** What the primary's clock is ahead of this one's, from the quickest of a few answers. */
async function clockOffset(channel: Channel<PrimaryDesk>): Promise<number> {
  let best = { roundMs: Number.POSITIVE_INFINITY, offsetMs: 0 };
  for (let round = 0; round < CLOCK_ROUNDS; round++) {
    const askedMs = systemClock.now();
    const primaryMs = await channel.call("clock", []);
    const roundMs = systemClock.now() - askedMs;
    if (primaryMs !== undefined && roundMs < best.roundMs)
      best = { roundMs, offsetMs: primaryMs - askedMs - roundMs / 2 };
  }
  return best.offsetMs;
}
