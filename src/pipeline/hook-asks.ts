// Questions of hooks to models: on the way of every other request, with a record of its own, and without hooks.

import { GatewayError } from "../errors/gateway-error.ts";
import type { HookAnswer } from "../hooks/define.ts";
import { isObject, parseJson } from "../lib/json.ts";
import { JsonBody } from "../lib/request-body.ts";
import { RequestRecord } from "../stats/request-record.ts";
import type { RequestContext } from "./context.ts";
import type { Generate } from "./generate.ts";
import { firstRequest, type ModelRequest } from "./model-request.ts";
import type { RequestReporter } from "./observe.ts";
import type { ModelNames } from "./routes.ts";

/** @param body - JSON */
export type HookAsker = (of: RequestContext, operation: string, body: string) => Promise<HookAnswer>;

interface HookAskerParts {
  generate: Generate;
  names: Pick<ModelNames, "requireAllowed" | "resolve">;
  aliases(asked: ModelRequest): ModelRequest;
  reporter: Pick<RequestReporter, "begun" | "finished">;
  now(): number;
  newOwnId(): string;
}

const OPERATION = /^[a-z][a-z-]{1,39}$/;

const decoder = new TextDecoder();

const NO_FRAME = { errorEvent: () => "", ended() {}, refused: () => undefined };

export function createHookAsker(parts: HookAskerParts): HookAsker {
  const { generate, names, aliases, reporter, now, newOwnId } = parts;
  return async (of, operation, text) => {
    const value = parseJson(text);
    if (!OPERATION.test(operation)) return refused(400, "operation must be the name of one, such as chat");
    if (!isObject(value) || typeof value.model !== "string")
      return refused(400, "the body must be an object with a model");
    const record = new RequestRecord(newOwnId(), of.record.requestId, now(), now);
    const context: RequestContext = { ...of, record, hooks: undefined, heldBytes: 0, spans: undefined };
    const body = JsonBody.written({ ...value, ...(value.stream !== undefined && { stream: false }) });
    const summary = { model: value.model, stream: false, choices: 1, affinity: () => undefined };
    let asked = aliases(firstRequest(summary, operation, body));
    Object.assign(record, { operation, model: asked.model, isRead: true });
    reporter.begun(context);
    let answer: HookAnswer;
    try {
      names.requireAllowed(of.caller, asked.model);
      asked = await names.resolve(context, asked);
      record.model = asked.model;
      answer = await answerOf(generate, context, asked);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      record.error = { type: error.type, code: error.code, message: error.message };
      record.isOutage = error.isOutage;
      answer = refused(error.status, error.message);
    }
    reporter.finished(context, answer.status, record.sinceStartMs);
    record.settle();
    return answer;
  };
}

async function answerOf(generate: Generate, context: RequestContext, asked: ModelRequest): Promise<HookAnswer> {
  const generated = await generate(context, asked, NO_FRAME);
  if (generated.kind === "failed") {
    const { failure } = generated.result;
    context.record.isOutage = true;
    return refused(failure.kind === "status" ? failure.status : 502, "the model could not be asked");
  }
  if (generated.kind === "stream") return refused(502, "the model answered with a stream");
  const { body } = generated.kind === "plain" ? generated.result : generated.replay;
  return { status: 200, body: parseJson(decoder.decode(body)) };
}

function refused(status: number, message: string): HookAnswer {
  return { status, body: { error: { message } } };
}
