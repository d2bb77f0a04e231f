// The body of a backend's Responses answer -> a whole answer.

import type { GenerationResult } from "../../generation/result.ts";
import { compact, isPresent, type JsonObject } from "../../lib/json.ts";
import { AnswerFailed, DecodeError } from "../protocol.ts";
import { objectsOf, textOf, wholeNumberOf } from "../reading.ts";
import { decodeError } from "./errors.ts";
import { decodeFinish } from "./finish.ts";
import { decodeItem } from "./output-decoder.ts";
import { decodeUsage } from "./usage.ts";

const UNFINISHED: readonly unknown[] = ["queued", "in_progress", "cancelled"];

export function decodeResponse(body: JsonObject): GenerationResult {
  if (isPresent(body.error) || body.status === "failed") throw new AnswerFailed(decodeError(200, body));
  if (UNFINISHED.includes(body.status)) throw new DecodeError(`is not finished: ${textOf(body.status)}`);
  if (!Array.isArray(body.output)) throw new DecodeError("has no output");
  const parts = objectsOf(body.output).flatMap(decodeItem);
  const calls = parts.filter((part) => part.type === "tool-call");
  const clientCalls = calls.filter((call) => call.serverSide !== true);
  return compact({
    id: textOf(body.id),
    model: textOf(body.model),
    createdAt: wholeNumberOf(body.created_at) ?? 0,
    parts,
    finish: decodeFinish(body, clientCalls.length > 0),
    usage: decodeUsage(body.usage, calls.length - clientCalls.length),
  });
}
