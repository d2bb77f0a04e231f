// Sends the events of a hook to a URL: JSON with a signature, over connections that stay open.

import type { HookEvent, HookSettings } from "../config/sections/hooks.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { Clock } from "../lib/clock.ts";
import type { Deadline, Deadlines } from "../lib/deadlines.ts";
import { isObject, type JsonObject, parseObject } from "../lib/json.ts";
import { parseInPieces } from "../lib/json-pieces.ts";
import { JsonShape } from "../lib/json-shape.ts";
import { otherWork } from "../lib/other-work.ts";
import { readBounded } from "../lib/read-bounded.ts";
import { signatureHeaders } from "../notifications/notice.ts";
import { checkJson, MAX_GROWTH_BYTES } from "./changes.ts";
import { countHolders } from "./holders.ts";
import { HookFault } from "./hook-fault.ts";
import { type HookOutcome, type HookRunner, MAX_CALLS, MAX_HELD_BYTES } from "./hook-runner.ts";
import { type CheckedVerdict, givenBytes, type HookCall, type LoadedHook } from "./hook-wire.ts";
import { decodeAnswerBody, decodeRequestBody, encodeRequestBody, parsedBody } from "./neutral-forms.ts";
import { messageOf } from "./run-module.ts";
import { checkVerdict } from "./verdicts.ts";

/** Some servers write each character that is not ASCII as six. */
const MAX_ESCAPING = 3;
/** Larger answers are parsed in pieces, so that other requests go on. */
const MAX_AT_ONCE_BYTES = 256 * 1024;
const PIECE_BYTES = 64 * 1024;
/** A chunk is what ends at a sentence: a call for each token would cost a round trip each. */
const CUTS = { by: "sentence", hold: 400, parts: ["text", "refusal"] } as const;

const decoder = new TextDecoder();

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
  let heldBytes = 0;

  /** @param hold - takes so much of the memory for calls, or throws */
  async function post(call: HookCall, signal: AbortSignal, hold: (bytes: number) => void): Promise<CheckedVerdict> {
    const id = `hook_${crypto.randomUUID().replaceAll("-", "")}`;
    const body = JSON.stringify(eventOf(call, id, options));
    const response = await fetch(url, {
      method: "POST",
      headers: {
        ...headers,
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        ...signatureHeaders({ id }, body, clock.wallTime(), secret),
      },
      body,
      signal,
      redirect: "manual",
      // The runtime would decompress all of an answer at once, however large it gets.
      decompress: false,
    });
    if (!response.ok) throw new HookFault(`it answered with HTTP ${response.status}`);
    const encoding = response.headers.get("content-encoding") ?? "identity";
    if (encoding.toLowerCase() !== "identity") throw new HookFault("its answer is compressed, which was not asked for");
    const maxBytes = MAX_ESCAPING * givenBytes(call.data) + MAX_GROWTH_BYTES;
    const answer = await readBounded(response.body, maxBytes, hold);
    if (answer === undefined) throw new HookFault(`its answer is larger than ${maxBytes} bytes`);
    const verdict = await verdictIn(answer);
    return checkVerdict(call, verdict, (request) => encodedRequest(call, request));
  }

  return {
    ready: () => Promise.resolve(loaded),
    async call(call, timeoutMs): Promise<HookOutcome> {
      let held = 0;
      const hold = (bytes: number) => {
        if (heldBytes + bytes > MAX_HELD_BYTES) throw new HookFault("too many bytes are under way");
        heldBytes += bytes;
        held += bytes;
      };
      if (waiting >= MAX_CALLS) return { error: "unavailable", message: "too many calls are under way" };
      waiting++;
      const over = new AbortController();
      let isLate = false;
      const limit: Deadline = {
        deadlineMs: clock.now() + timeoutMs,
        expire: () => {
          isLate = true;
          over.abort();
        },
      };
      deadlines.add(limit);
      try {
        hold(givenBytes(call.data));
        return { verdict: await post(call, AbortSignal.any([over.signal, ended.signal]), hold) };
      } catch (error) {
        if (isLate) return { error: "timeout", message: "no verdict in time" };
        // An error of the connection would name the address.
        const message = error instanceof HookFault ? messageOf(error) : "it could not be reached";
        return { error: "error", message };
      } finally {
        deadlines.remove(limit);
        over.abort(); // an answer that was not read to its end
        waiting--;
        heldBytes -= held;
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
async function verdictIn(answer: Uint8Array): Promise<unknown> {
  if (answer.length === 0) return undefined;
  const shape = new JsonShape(answer);
  while (!shape.isComplete) {
    shape.advance(MAX_AT_ONCE_BYTES);
    checkJson(shape);
    if (!shape.isComplete) await otherWork();
  }
  const parsed = answer.length > MAX_AT_ONCE_BYTES ? await parsedInPieces(answer) : parseObject(decoder.decode(answer));
  if (!isObject(parsed)) throw new HookFault("its answer is no JSON object");
  return parsed;
}

async function parsedInPieces(answer: Uint8Array): Promise<unknown> {
  try {
    return await parseInPieces(answer, { pieceBytes: PIECE_BYTES, pause: otherWork });
  } catch {
    return undefined; // no JSON
  }
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
