// Where requests meet hooks: which hooks a request has, and its body before routing and before an attempt.

import { formatOf } from "../backends/operations.ts";
import type { HookEvent } from "../config/sections/hooks.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { asEvents } from "../generation/as-events.ts";
import type { GenerationEvent } from "../generation/events.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { GenerationResult } from "../generation/result.ts";
import type { HookInfo } from "../hooks/define.ts";
import { HookFault } from "../hooks/hook-fault.ts";
import type { HookInUse } from "../hooks/hooks-part.ts";
import { isConversation, NEUTRAL } from "../hooks/neutral-forms.ts";
import { compact, type JsonObject } from "../lib/json.ts";
import { JsonBody } from "../lib/request-body.ts";
import { clientProtocol } from "../protocols/registry.ts";
import type { RequestSummary } from "../protocols/request-summary.ts";
import type { RequestContext } from "./context.ts";
import type { Generated } from "./generate.ts";
import type { HookAsker } from "./hook-asks.ts";
import { checkNeutral } from "./hook-attempt.ts";
import { type CalledHook, HookRun, type HookRunParts } from "./hook-run.ts";
import { AnswerStages, named, type RepairAsk } from "./hook-stages.ts";
import { answerContext } from "./hooked-answers.ts";
import type { ModelRequest } from "./model-request.ts";

type HookedRequest =
  | { kind: "asked"; asked: ModelRequest }
  /** A hook has given the answer. */
  | { kind: "answer"; answer: Generated };

export interface RequestHooks {
  /**
   * Calls the hooks of a request before a backend is looked for. Throws what they refuse.
   * @param read - checks a changed body as the client's was checked; undefined: its summary stays
   */
  request(
    context: RequestContext,
    asked: ModelRequest,
    read: (value: JsonObject) => RequestSummary | undefined,
  ): Promise<HookedRequest>;
  /** The same of a request in the neutral model. */
  neutral(
    context: RequestContext,
    asked: ModelRequest,
    neutral: GenerationRequest,
  ): Promise<{ neutral: GenerationRequest; asked?: ModelRequest } | { answer: GenerationResult }>;
}

interface RequestHooksParts extends Pick<HookRunParts, "called" | "now"> {
  hooks: readonly HookInUse[];
  asker: HookAsker;
  wallTime(): number;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function createRequestHooks(parts: RequestHooksParts): RequestHooks {
  const { hooks, asker, called, now, wallTime } = parts;

  /** Gives the request its hooks; undefined: it has none. */
  async function begin(context: RequestContext, asked: ModelRequest, format: string): Promise<HookRun | undefined> {
    const info = infoOf(context, asked, format);
    const matching = hooks.filter((hook) => hook.matches(info));
    if (matching.length === 0) return undefined;
    // Held before anything is waited for: a module that is edited meanwhile would end the process that is loading.
    const held = matching.map((hook) => ({ hook, runner: hook.runner, release: hook.runner.hold() }));
    const ready = await Promise.all(held.map(({ hook, runner }) => runner.ready(hook.settings.name)));
    const found: CalledHook[] = [];
    const missing: HookInUse[] = [];
    for (const [index, each] of held.entries()) {
      const loaded = ready[index];
      if (loaded !== undefined && loaded.problem === undefined) found.push({ ...each, loaded });
      else {
        missing.push(each.hook);
        each.release();
      }
    }
    const { record } = context;
    const ask: HookRunParts["ask"] = (operation, body) => asker(context, operation, body);
    const run = new HookRun(found, { info, record, ask, called, now });
    context.hooks = run;
    for (const hook of missing) {
      const { name } = hook.settings;
      const event: HookEvent = "request";
      record.add({
        kind: "hook",
        hook: name,
        event,
        verdict: "unavailable",
        durationMs: 0,
        detail: "it is not loaded",
      });
      called(name, event, "unavailable", 0, 1);
      run.failed(hook, event);
    }
    return run;
  }

  return {
    async request(context, asked, read) {
      const format = formatOf(asked.operation) ?? asked.operation;
      const run = await begin(context, asked, format);
      if (run === undefined) return { kind: "asked", asked };
      if (asked.choices > 1 && run.readers().length > 0) {
        throw new GatewayError(ERRORS.invalidRequest, "n must be 1, because a hook reads the answer.", { param: "n" });
      }
      const isForm = asked.body.contentType !== undefined;
      const bytes = isForm ? encoder.encode(JSON.stringify(asked.body.value)) : asked.body.bytes();
      const left = await run.request(bytes, (value) => {
        if (isForm) throw new HookFault("a form cannot be changed");
        changedRequest(asked, value, read);
      });
      if (left === undefined) return { kind: "asked", asked };
      if ("answer" in left) {
        const answer = answerOf(asked, left.answer, Math.floor(wallTime() / 1000));
        return { kind: "answer", answer };
      }
      const changed = changedRequest(asked, JSON.parse(decoder.decode(left.body)) as JsonObject, read);
      return { kind: "asked", asked: { ...changed, body: new JsonBody(left.body, changed.body.value) } };
    },

    async neutral(context, asked, neutral) {
      const run = await begin(context, asked, NEUTRAL);
      const left = await run?.request(encoder.encode(JSON.stringify(neutral)), checkNeutral);
      if (left === undefined) return { neutral };
      if ("answer" in left) return { answer: named(left.answer, headOf(asked, wallTime())) };
      const changed = JSON.parse(decoder.decode(left.body)) as GenerationRequest;
      const { model } = changed;
      const next = model === neutral.model ? asked : { ...asked, model };
      return { neutral: { ...neutral, ...changed, origin: neutral.origin }, asked: next };
    },
  };
}

function infoOf(
  { record, caller }: RequestContext,
  { operation, model, stream }: ModelRequest,
  format: string,
): HookInfo {
  const { id, requestId, user } = record;
  const of = { id, requestId, operation, format, model, stream };
  return { ...of, ...compact({ key: caller?.keyId, organization: caller?.organizationId, user }) };
}

/** What a hook has made of a request is checked as the client's own was. */
function changedRequest(
  asked: ModelRequest,
  value: JsonObject,
  read: (value: JsonObject) => RequestSummary | undefined,
): ModelRequest {
  const summary = read(value);
  const model = summary?.model ?? (typeof value.model === "string" ? value.model : asked.model);
  if (summary !== undefined && summary.stream !== asked.stream) throw new HookFault("stream cannot be changed");
  if (summary !== undefined && summary.choices !== asked.choices) {
    throw new HookFault("the number of choices cannot be changed");
  }
  return { ...asked, ...summary, model, body: JsonBody.written(value) };
}

function headOf({ askedModel }: ModelRequest, wallTime: number) {
  return { id: crypto.randomUUID(), model: askedModel, createdAt: Math.floor(wallTime / 1000) };
}

/** The answer of a hook in the client's format, as one that was kept. */
function answerOf(asked: ModelRequest, result: GenerationResult, createdAt: number): Generated {
  const format = formatOf(asked.operation);
  if (format === undefined || !isConversation(asked.operation))
    throw new GatewayError(ERRORS.hookFailed, "Only a conversation can be answered by a hook.");
  const client = clientProtocol(format);
  const answer = answerContext(client, asked, createdAt);
  const whole = named(result, { id: "", model: asked.askedModel, createdAt });
  if (!asked.stream) {
    const body = encoder.encode(JSON.stringify(client.encodeResponse(whole, answer)));
    return { kind: "replayed", cache: undefined, replay: { contentType: "application/json", body } };
  }
  const writer = client.streamEncoder(answer);
  const events = asEvents(whole).map((event) => writer.push(event));
  const body = encoder.encode(events.join("") + writer.end());
  return { kind: "replayed", cache: undefined, replay: { contentType: "text/event-stream; charset=utf-8", body } };
}

/** The events of an answer in the neutral model, behind the hooks of its request. */
export async function* throughStages(
  run: HookRun,
  events: AsyncIterable<GenerationEvent>,
  askAgain: RepairAsk,
): AsyncGenerator<GenerationEvent, void> {
  const readers = run.readers();
  if (readers.length === 0) {
    yield* events;
    return;
  }
  const stages = new AnswerStages(run, readers, askAgain);
  try {
    for await (const event of events) yield* await stages.push(event);
  } finally {
    stages.end();
  }
}
