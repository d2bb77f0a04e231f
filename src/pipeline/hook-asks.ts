// Questions of hooks to models: on the way of every other request, with a record of its own, and without hooks.

import { broughtBy, writesText } from "../backends/operations.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { HookAnswer } from "../hooks/define.ts";
import { refusedAnswer } from "../hooks/hook-runner.ts";
import { decodeRequestBody } from "../hooks/neutral-forms.ts";
import { isObject, parseJson } from "../lib/json.ts";
import { JsonBody } from "../lib/request-body.ts";
import type { Logger } from "../logging/logger.ts";
import { isFormat } from "../protocols/registry.ts";
import { RequestRecord } from "../stats/request-record.ts";
import type { RequestContext } from "./context.ts";
import type { Generate } from "./generate.ts";
import { firstRequest, type ModelRequest } from "./model-request.ts";
import type { RequestReporter } from "./observe.ts";
import type { ModelNames } from "./routes.ts";

/** Never rejects. @param body - JSON */
export type HookAsker = (of: RequestContext, operation: string, body: string) => Promise<HookAnswer>;

interface HookAskerParts {
  generate: Generate;
  names: Pick<ModelNames, "requireAllowed" | "resolve">;
  aliases(asked: ModelRequest): ModelRequest;
  reporter: Pick<RequestReporter, "begun" | "finished">;
  now(): number;
  newOwnId(): string;
  log: Pick<Logger, "error">;
}

const decoder = new TextDecoder();

const NO_FRAME = { errorEvent: () => "", ended() {}, refused: () => undefined };

export function createHookAsker(parts: HookAskerParts): HookAsker {
  const { generate, names, aliases, reporter, now, newOwnId, log } = parts;
  return async (of, operation, text) => {
    const value = parseJson(text);
    if (!isAskable(operation))
      return refusedAnswer(400, "operation must be the name of one that takes JSON, such as chat");
    if (!isObject(value) || typeof value.model !== "string")
      return refusedAnswer(400, "the body must be an object with a model");
    const record = new RequestRecord(newOwnId(), of.record.requestId, now(), now);
    const context: RequestContext = { ...of, record, hooks: undefined, heldBytes: 0, spans: undefined };
    const body = JsonBody.written({ ...value, ...(value.stream !== undefined && { stream: false }) });
    const summary = { model: value.model, stream: false, choices: 1, affinity: () => undefined };
    let asked = aliases(firstRequest(summary, operation, body));
    Object.assign(record, { operation, model: asked.model, isRead: true });
    reporter.begun(context);
    let answer: HookAnswer;
    try {
      decodeRequestBody(operation, body.value);
      names.requireAllowed(of.caller, asked.model);
      asked = await names.resolve(context, asked);
      record.model = asked.model;
      answer = await answerOf(generate, context, asked);
    } catch (error) {
      const told = error instanceof GatewayError ? error : unexpected(error);
      if (told !== error) log.error({ err: error }, "unexpected error in a question of a hook");
      record.error = { type: told.type, code: told.code, message: told.message };
      record.isOutage = told.isOutage;
      answer = refusedAnswer(told.status, told.message);
    }
    reporter.finished(context, answer.status, record.sinceStartMs);
    record.settle();
    return answer;
  };
}

/** Names come from code of others: one that is no operation would be looked up in tables by it. */
function isAskable(operation: string): boolean {
  return (isFormat(operation) || !writesText(operation)) && broughtBy(operation) === undefined;
}

function unexpected(cause: unknown): GatewayError {
  return new GatewayError(ERRORS.internal, "An unexpected error happened.", { cause });
}

async function answerOf(generate: Generate, context: RequestContext, asked: ModelRequest): Promise<HookAnswer> {
  const generated = await generate(context, asked, NO_FRAME);
  if (generated.kind === "failed") {
    const { failure } = generated.result;
    context.record.isOutage = true;
    return refusedAnswer(failure.kind === "status" ? failure.status : 502, "the model could not be asked");
  }
  if (generated.kind === "stream") return refusedAnswer(502, "the model answered with a stream");
  const { body } = generated.kind === "plain" ? generated.result : generated.replay;
  return { status: 200, body: parseJson(decoder.decode(body)) };
}
