// Runs a hook of a module: loads it, makes an event of a call and checks the verdict.

import { HOOK_EVENTS, type HookEvent } from "../config/sections/hooks.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import { JsonShape } from "../lib/json-shape.ts";
import { checkGrowth, checkJson } from "./changes.ts";
import type { ChunkCuts, Hook, HookAnswer } from "./define.ts";
import { HookFault } from "./hook-fault.ts";
import { type CheckedVerdict, givenBytes, type HookCall, type HostedHook, type LoadedHook } from "./hook-wire.ts";
import { decodeAnswerBody, decodeRequestBody, encodeRequestBody, parsedBody } from "./neutral-forms.ts";
import { checkVerdict } from "./verdicts.ts";

const USUAL_CUTS: Required<ChunkCuts> = { by: "sentence", hold: 400, parts: ["text", "refusal"] };
const LEAST_HOLD = 16;
const MOST_HOLD = 8192;

/** In UTF-8. */
const MAX_BYTES_OF_UNIT = 3;

const encoder = new TextEncoder();

type HookQuestion = (operation: string, body: string) => Promise<HookAnswer>;

interface RunningHook {
  loaded: LoadedHook;
  /** Throws what the module throws, and a HookFault for a verdict that is none. */
  run(call: HookCall, ask: HookQuestion): Promise<CheckedVerdict>;
}

/** `problem` says why a module cannot be loaded. */
export async function loadHook(hosted: HostedHook, load: () => Promise<unknown>): Promise<RunningHook> {
  const { name, options: given } = hosted;
  try {
    const hook = hookIn(await load());
    const options = hook.options === undefined ? given : await hook.options(given);
    const cuts = typeof hook.chunks === "function" ? hook.chunks(options as JsonObject) : hook.chunks;
    const events = HOOK_EVENTS.filter((event) => typeof hook[event] === "function");
    return {
      loaded: { name, events, chunks: checkedCuts(cuts) },
      run: (call, ask) => runEvent(hook, options as JsonObject, hosted.salt, call, ask),
    };
  } catch (error) {
    const problem = messageOf(error);
    return {
      loaded: { name, events: [], chunks: USUAL_CUTS, problem },
      run: () => Promise.reject(new HookFault(problem)),
    };
  }
}

function hookIn(module: unknown): Hook {
  const hook = isObject(module) ? module.default : undefined;
  if (!isObject(hook))
    throw new HookFault("the module must export a hook as its default: export default defineHook({ … })");
  if (!HOOK_EVENTS.some((event) => typeof hook[event] === "function")) {
    throw new HookFault(`the hook has no function for an event; expected one of ${HOOK_EVENTS.join(", ")}`);
  }
  return hook as Hook;
}

function checkedCuts(cuts: ChunkCuts | undefined): Required<ChunkCuts> {
  const checked = { ...USUAL_CUTS, ...cuts };
  const { by, hold, parts } = checked;
  if (!["sentence", "window", "delta"].includes(by)) throw new HookFault("chunks.by must be sentence, window or delta");
  if (!Number.isInteger(hold) || hold < LEAST_HOLD || hold > MOST_HOLD) {
    throw new HookFault(`chunks.hold must be from ${LEAST_HOLD} to ${MOST_HOLD}`);
  }
  if (!Array.isArray(parts)) throw new HookFault("chunks.parts must be a list");
  return checked;
}

async function runEvent(
  hook: Hook,
  options: JsonObject,
  salt: string,
  call: HookCall,
  ask: HookQuestion,
): Promise<CheckedVerdict> {
  const { event, info, data } = call;
  const handler = hook[event] as ((event: unknown) => unknown) | undefined;
  if (handler === undefined) return { kind: "pass" };
  const returned = await handler.call(hook, eventOf(options, salt, call, ask));
  const verdict = checkVerdict(call, returned, (request) => encodeRequestBody(info.format, request));
  checkShape(verdict, givenBytes(data));
  return verdict;
}

/** Checked here, where it costs the gateway nothing: what is deep or large holds up those who read it. */
function checkShape(verdict: CheckedVerdict, givenBytes: number): void {
  const result = "result" in verdict ? JSON.stringify(verdict.result) : undefined;
  for (const json of [verdict.state, result, verdict.kind === "change" ? verdict.body : undefined]) {
    if (json === undefined) continue;
    checkGrowth(json, givenBytes);
    const shape = new JsonShape(encoder.encode(json));
    shape.advance(json.length * MAX_BYTES_OF_UNIT);
    checkJson(shape);
  }
  if (verdict.kind === "change") checkGrowth((verdict.text ?? "") + (verdict.rest ?? ""), givenBytes);
}

/** The event as the module gets it; bodies are parsed and decoded when they are asked for. */
function eventOf(
  options: JsonObject,
  salt: string,
  { event, hook, info, state, data }: HookCall,
  ask: HookQuestion,
): unknown {
  const { body: bytes, end, ...plain } = data;
  const body = once(() => parsedBody(bytes));
  const request = once(() => decodeRequestBody(info.format, body()));
  const result = once(() => decodeAnswerBody(info.format, body()));
  const common = {
    hook,
    info,
    options,
    state: state === undefined ? undefined : (JSON.parse(state) as unknown),
    salt,
    ask: (operation: string, asked: JsonObject) => ask(operation, JSON.stringify(asked)),
    ...plain,
    ...end,
  };
  if (bytes === undefined) return common;
  const lazy: Partial<Record<HookEvent, object>> = {
    answer: {
      get result() {
        return result();
      },
    },
  };
  const shown = lazy[event] ?? {
    get request() {
      return request();
    },
  };
  Object.defineProperty(shown, "body", { get: body, enumerable: true });
  return Object.defineProperties(common, Object.getOwnPropertyDescriptors(shown));
}

function once<Value>(make: () => Value): () => Value {
  let made: { value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

export function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 500);
}
