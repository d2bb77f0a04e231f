// The process of a module: loads its hooks, answers the calls of the gateway, and ends with it.

import { BUILTIN_PREFIX } from "../config/sections/hooks.ts";
import { BUILTINS } from "./builtin/registry.ts";
import type { HookAnswer } from "./define.ts";
import * as publicInterface from "./define.ts";
import { HookFault } from "./hook-fault.ts";
import type { FromHost, HostedHook, ToHost } from "./hook-wire.ts";
import { HOOK_MARK } from "./mark.ts";
import { loadHook, messageOf } from "./run-module.ts";

type RunningHook = Awaited<ReturnType<typeof loadHook>>;

/** Modules import it by this name, wherever they stand. */
const INTERFACE = "signalbox/hooks";

/**
 * A thread of its own, because a module that loops leaves this one no time. Ended by a signal, without any code of the module; the
 * signal tells the gateway why (process-runner.ts).
 */
const WATCH_MS = 20;

export async function runHost(env: Record<string, string | undefined>): Promise<number> {
  watchMemory(Number(env[HOOK_MARK]));
  provideInterface();
  const { promise: ended, resolve: end } = Promise.withResolvers<number>();
  const hooks = new Map<string, RunningHook>();
  const asking = new Map<number, (answer: HookAnswer) => void>();
  let lastAsk = 0;
  const send = takeChannel();

  function ask(call: number, operation: string, body: string): Promise<HookAnswer> {
    const { promise, resolve } = Promise.withResolvers<HookAnswer>();
    const id = ++lastAsk;
    asking.set(id, resolve);
    send({ kind: "ask", id, call, operation, body });
    return promise;
  }

  async function received(message: ToHost): Promise<void> {
    switch (message.kind) {
      case "start": {
        const running = await Promise.all(message.hooks.map((hosted) => loadHook(hosted, () => load(hosted))));
        for (const hook of running) hooks.set(hook.loaded.name, hook);
        return send({ kind: "ready", hooks: running.map(({ loaded }) => loaded) });
      }
      case "asked":
        asking.get(message.id)?.(message.answer);
        asking.delete(message.id);
        return;
      case "ping":
        return send({ kind: "pong" });
      case "call": {
        const { id, call } = message;
        try {
          const hook = hooks.get(call.hook) as RunningHook;
          send({ kind: "verdict", id, verdict: await hook.run(call, (...asked) => ask(id, ...asked)) });
        } catch (error) {
          send({ kind: "failed", id, message: shownOf(error), thrown: messageOf(error) });
        }
      }
    }
  }

  process.on("message", (message) => void received(message as ToHost));
  process.on("disconnect", () => end(0));
  return await ended;
}

/** The channel to the gateway is the host's alone: libraries send what they please to a parent that they find. */
function takeChannel(): (message: FromHost) => void {
  const send = process.send?.bind(process);
  delete process.send;
  process.disconnect = () => {};
  return (message) => void send?.(message);
}

/** A message that a module throws may hold what a client has written: the story has its kind and its place alone. */
function shownOf(error: unknown): string {
  if (error instanceof HookFault) return messageOf(error);
  const name = error instanceof Error ? error.name : typeof error;
  const place = error instanceof Error ? /[\w.-]+\.[cm]?[jt]sx?:\d+:\d+/.exec(error.stack ?? "")?.[0] : undefined;
  return `it threw ${name.slice(0, 60)}${place === undefined ? "" : ` at ${place}`}`;
}

function load({ module }: HostedHook): Promise<unknown> {
  if (!module.startsWith(BUILTIN_PREFIX)) return import(module);
  const name = module.slice(BUILTIN_PREFIX.length) as keyof typeof BUILTINS;
  return Promise.resolve({ default: BUILTINS[name] });
}

function provideInterface(): void {
  Bun.plugin({
    name: INTERFACE,
    setup: (build) => {
      build.module(INTERFACE, () => ({ exports: { ...publicInterface }, loader: "object" }));
    },
  });
}

function watchMemory(maxBytes: number): void {
  const watch = `setInterval(() => {
    if (process.memoryUsage.rss() > ${maxBytes}) process.kill(process.pid, "SIGVTALRM");
    if (process.ppid !== ${process.ppid}) process.kill(-process.pid, "SIGKILL");
  }, ${WATCH_MS});`;
  new Worker(`data:text/javascript,${encodeURIComponent(watch)}`);
}
