// A request before one backend is asked, as its hooks leave it.

import { formatOf } from "../backends/operations.ts";
import type { GenerationRequest } from "../generation/request.ts";
import { HookFault } from "../hooks/hook-fault.ts";
import { decodeRequestBody, NEUTRAL } from "../hooks/neutral-forms.ts";
import type { JsonObject } from "../lib/json.ts";
import { JsonBody } from "../lib/request-body.ts";
import type { HookRun } from "./hook-run.ts";
import type { ModelRequest } from "./model-request.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The request as one backend gets it. Throws what hooks refuse. */
export async function hookedAttempt(run: HookRun, request: ModelRequest, backend: string): Promise<ModelRequest> {
  const { asking, body, model, operation } = request;
  const { neutral } = asking;
  if (neutral !== undefined) {
    const given = encoder.encode(JSON.stringify(neutral));
    const left = await run.attempt(given, { backend, model, format: NEUTRAL }, checkNeutral);
    if (left === undefined) return request;
    const changed = { ...neutral, ...(parsed(left) as unknown as GenerationRequest), origin: neutral.origin };
    return { ...request, asking: { ...asking, neutral: changed } };
  }
  const isForm = body.contentType !== undefined;
  const given = isForm ? encoder.encode(JSON.stringify(body.value)) : body.bytes();
  const left = await run.attempt(given, { backend, model }, (value) => {
    if (isForm) throw new HookFault("a form cannot be changed");
    checkChanged(formatOf(operation) ?? operation, body.value, value);
  });
  return left === undefined ? request : { ...request, body: new JsonBody(left, parsed(left)) };
}

/** What is awaited of the backend is decided: an answer of another form would be taken for its fault. */
function checkChanged(format: string, before: JsonObject, after: JsonObject): void {
  const is = decodeRequestBody(format, after);
  if (is === undefined) return;
  const was = decodeRequestBody(format, before);
  if (is.stream !== was?.stream) throw new HookFault("stream cannot be changed");
  if ((is.sampling.choices ?? 1) !== (was.sampling.choices ?? 1))
    throw new HookFault("the number of choices cannot be changed");
}

/** Throws for what is no request of the neutral model. */
export function checkNeutral(value: JsonObject): void {
  const lists = [value.system, value.messages, value.tools];
  if (!lists.every(Array.isArray)) throw new HookFault("the changed request must have system, messages and tools");
}

function parsed(body: Uint8Array): JsonObject {
  return JSON.parse(decoder.decode(body)) as JsonObject;
}
