// Sends the events of a hook to a URL: JSON with a signature, over connections that stay open.

import type { HookEvent, HookSettings } from "../config/sections/hooks.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { Clock } from "../lib/clock.ts";
import type { Deadline, Deadlines } from "../lib/deadlines.ts";
import { type JsonObject, parseObject } from "../lib/json.ts";
import { readBounded } from "../lib/read-bounded.ts";
import { signatureHeaders } from "../notifications/notice.ts";
import { countHolders } from "./holders.ts";
import type { HookOutcome, HookRunner } from "./hook-runner.ts";
import type { CheckedVerdict, HookCall, LoadedHook } from "./hook-wire.ts";
import { decodeAnswerBody, decodeRequestBody, encodeRequestBody, parsedBody } from "./neutral-forms.ts";
import { messageOf } from "./run-module.ts";
import { checkVerdict, HookFault } from "./verdicts.ts";

const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const MAX_CALLS = 1_000;
/** A chunk is what ends at a sentence: a call for each token would cost a round trip each. */
const CUTS = { by: "sentence", hold: 400, parts: ["text", "refusal"] } as const;

type HttpHook = Pick<HookSettings, "name" | "events" | "secret" | "headers" | "options"> & { url: string };

interface HttpRunnerParts {
  clock: Clock;
  deadlines: Deadlines;
}

export function createHttpRunner(hook: HttpHook, { clock, deadlines }: HttpRunnerParts): HookRunner {
  const { name, url, secret, headers, events = [], options } = hook;
  const loaded: LoadedHook = { name, events, chunks: CUTS };
  const ended = new AbortController();
  let waiting = 0;

  async function post(call: HookCall, signal: AbortSignal): Promise<CheckedVerdict> {
    const id = `hook_${crypto.randomUUID().replaceAll("-", "")}`;
    const body = JSON.stringify(eventOf(call, id, options));
    const response = await fetch(url, {
      method: "POST",
      headers: {
        ...headers,
        "Content-Type": "application/json",
        ...signatureHeaders({ id }, body, clock.wallTime(), secret),
      },
      body,
      signal,
      redirect: "manual",
    });
    const answer = await readBounded(response.body, MAX_ANSWER_BYTES);
    if (!response.ok) throw new HookFault(`it answered with HTTP ${response.status}`);
    if (answer === undefined) throw new HookFault(`its answer is larger than ${MAX_ANSWER_BYTES} bytes`);
    return checkVerdict(call.event, verdictIn(answer), (request) => encodedRequest(call, request));
  }

  return {
    ready: () => Promise.resolve(loaded),
    async call(call, timeoutMs): Promise<HookOutcome> {
      if (waiting >= MAX_CALLS) return { error: "unavailable", message: "too many calls are under way" };
      waiting++;
      const late = new AbortController();
      const limit: Deadline = { deadlineMs: clock.now() + timeoutMs, expire: () => late.abort() };
      deadlines.add(limit);
      try {
        return { verdict: await post(call, AbortSignal.any([late.signal, ended.signal])) };
      } catch (error) {
        if (late.signal.aborted) return { error: "timeout", message: "no verdict in time" };
        // An error of the connection would name the address.
        const message = error instanceof HookFault ? messageOf(error) : "it could not be reached";
        return { error: "error", message };
      } finally {
        deadlines.remove(limit);
        waiting--;
      }
    },
    get waiting() {
      return waiting;
    },
    ...countHolders(() => ended.abort()),
    stop: () => ended.abort(),
  };
}

/** An empty answer is a pass. */
function verdictIn(answer: Uint8Array): unknown {
  if (answer.length === 0) return undefined;
  const parsed = parseObject(new TextDecoder().decode(answer));
  if (parsed === undefined) throw new HookFault("its answer is no JSON object");
  return parsed;
}

function eventOf({ event, info, state, data }: HookCall, id: string, options: JsonObject): JsonObject {
  const { body: bytes, end, ...plain } = data;
  const body = bytes && parsedBody(bytes);
  return {
    ...{ id, event, info, options, ...plain, ...end },
    ...(state !== undefined && { state: JSON.parse(state) as unknown }),
    ...(body !== undefined && { body, ...neutralOf(event, info.format, body) }),
  };
}

function neutralOf(event: HookEvent, format: string, body: JsonObject): JsonObject {
  if (event === "answer") return { result: decodeAnswerBody(format, body) };
  const request = decodeRequestBody(format, body);
  if (request === undefined) return {};
  const { origin: _, ...shown } = request; // the body once more
  return { request: shown };
}

/** A request that came back without what was not sent. */
function encodedRequest({ info, data }: HookCall, request: GenerationRequest): JsonObject {
  const before = decodeRequestBody(info.format, parsedBody(data.body));
  return encodeRequestBody(info.format, { ...request, ...(before && { origin: before.origin }) });
}
