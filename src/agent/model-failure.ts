// A model that gave no answer: the end of a turn that the client gets as an error.

import { GatewayError } from "../errors/gateway-error.ts";
import type { Failure } from "../generation/result.ts";

export class ModelFailure extends Error {
  override readonly name = "ModelFailure";
  /** The HTTP status for this failure. */
  readonly status: number;
  readonly type: string;
  readonly code: string | number;

  constructor({ message, status, type = "backend_error", code = status }: ToldFailure, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.status = status;
    this.type = type;
    this.code = code;
  }
}

type ToldFailure = Pick<Failure, "message" | "status" | "type"> & { code?: string | number };

/** Of what the gateway has refused; undefined for any other error, which is a bug. */
export function failureOfError(error: unknown): ModelFailure | undefined {
  return error instanceof GatewayError ? new ModelFailure(error, error) : undefined;
}

const TOO_LONG =
  /context[_ ](?:length|window|size|limit)|maximum context|prompt is too long|input is too long|too many (?:input |prompt )?tokens|input token count.{0,80}exceeds/i;

/** True if the conversation was too long for the model. Each vendor has other words for this. */
export function isTooLong({ status, code, type, message }: ModelFailure): boolean {
  if (code === "context_length_exceeded" || type === "exceed_context_size_error") return true;
  return (status === 400 || status === 413 || status === 422) && TOO_LONG.test(message);
}

const NO_TOOLS =
  /(?:does|do) not support (?:tools?|functions?)\b|(?:tools?|tool use|tool calling|function calling) (?:is|are) not (?:supported|available)|auto-tool-choice/i;

/** True if the model supports no tools at all. */
export function takesNoTools({ status, message }: ModelFailure): boolean {
  return (status === 400 || status === 404 || status === 422) && NO_TOOLS.test(message);
}

const NOT_UNDERSTOOD: ReadonlySet<number> = new Set([400, 413, 415, 422]);

/** True if the same request would be refused again, however often it is sent. */
export function isRefusedForGood({ status }: ModelFailure): boolean {
  return NOT_UNDERSTOOD.has(status);
}
