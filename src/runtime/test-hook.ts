// signalbox --test-hook: calls the module of a hook with the body of a request, in a process as in a gateway, and says what comes of it.

import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { loadConfig } from "../config/compile/load.ts";
import type { HookOutcome } from "../hooks/hook-runner.ts";
import { createProcessRunner } from "../hooks/process-runner.ts";
import { messageOf } from "../hooks/run-module.ts";
import { createDeadlines } from "../lib/deadlines.ts";
import { type JsonObject, parseObject } from "../lib/json.ts";
import { formatOfBody } from "../protocols/registry.ts";
import { hookProcess } from "./hook-process.ts";
import { surroundings } from "./open-configuration.ts";

const MAX_BYTES = 256 * 1024 * 1024;
const TIME_LIMIT_MS = 60_000;
const NAME = "hook";

interface TestedHook {
  module: string;
  /** The file with the body. */
  request: string;
  /** The file of a configuration that has the hook, with its options. */
  config: string | undefined;
}

/** Returns the exit code: 0 for a verdict. */
export async function testHook(tested: TestedHook, env: Record<string, string | undefined>): Promise<number> {
  let bytes: Uint8Array;
  try {
    bytes = await readFile(tested.request);
  } catch (error) {
    return fail(messageOf(error));
  }
  const body = parseObject(new TextDecoder().decode(bytes));
  if (body === undefined) return fail(`${tested.request} is no JSON object`);
  const module = resolve(tested.module);
  const options = await optionsOf(module, tested.config, env);
  if (options === undefined) return fail(`the hook is not found in ${tested.config}, or that is wrong`);
  const quiet = { info() {}, warn() {} };
  const now = () => performance.now();
  const runner = createProcessRunner({
    ...hookProcess(env),
    ...{
      cwd: dirname(module),
      maxBytes: MAX_BYTES,
      now,
      log: quiet,
    },
    hooks: [{ name: NAME, module, options, salt: crypto.randomUUID() }],
    deadlines: createDeadlines(now),
    restarted() {},
    loaded() {},
  });
  try {
    const loaded = await runner.ready(NAME);
    if (loaded === undefined) return fail("the process of the module does not start");
    if (loaded.problem !== undefined) return fail(loaded.problem);
    const startedAtMs = now();
    const outcome = await runner.call(callFor(body, bytes), TIME_LIMIT_MS, noGateway);
    const durationMs = now() - startedAtMs;
    if ("error" in outcome) return fail(`${outcome.error}: ${outcome.thrown ?? outcome.message}`);
    const told = { events: loaded.events, ...verdictOf(outcome), duration_ms: Number(durationMs.toFixed(2)) };
    process.stdout.write(`${JSON.stringify(told, undefined, 2)}\n`);
    return 0;
  } finally {
    runner.stop();
  }
}

/** Undefined: the configuration does not have it. */
async function optionsOf(module: string, path: string | undefined, env: Record<string, string | undefined>) {
  if (path === undefined) return {};
  const loaded = await loadConfig({ ...surroundings(env, undefined), path, cwd: process.cwd() });
  if (!loaded.ok) return undefined;
  const { settings, attachments } = loaded.snapshot;
  return settings.hooks.find((hook) => attachments.hookModules.get(hook.module ?? "") === module)?.options;
}

function callFor(body: JsonObject, bytes: Uint8Array) {
  const format = formatOfBody(body);
  const model = typeof body.model === "string" ? body.model : "";
  const info = { id: "test", requestId: "test", operation: format, format, model, stream: body.stream === true };
  return { event: "request" as const, hook: NAME, info, state: undefined, data: { body: bytes } };
}

function noGateway() {
  return Promise.resolve({ status: 503, body: { error: { message: "there is no gateway to ask" } } });
}

function verdictOf(outcome: HookOutcome & { verdict: unknown }) {
  const { kind, state, body, ...more } = outcome.verdict as { kind: string; state?: string; body?: string };
  return {
    verdict: kind,
    ...more,
    ...(body !== undefined && { body: parseObject(body) }),
    ...(state !== undefined && { state: JSON.parse(state) as unknown }),
  };
}

function fail(message: string): number {
  process.stderr.write(`${message}\n`);
  return 1;
}
