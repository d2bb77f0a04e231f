// A Messages backend's whole answer -> neutral result.

import type { ContentPart } from "../../generation/content.ts";
import type { GenerationResult } from "../../generation/result.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { DecodeError } from "../protocol.ts";
import { nonEmptyText, textOf } from "../reading.ts";
import { decodeAnswerBlock } from "./content-decoder.ts";
import { decodeFinish } from "./finish-reason.ts";
import { decodeUsage } from "./usage.ts";
import { isBlock } from "./wire.ts";

export function decodeResponse(body: JsonObject): GenerationResult {
  if (!Array.isArray(body.content)) throw new DecodeError("is no message: it has no list named content");
  const parts: ContentPart[] = body.content.filter(isBlock).map(decodeAnswerBlock).filter(saysSomething);
  const explanation = refusalText(body.stop_details);
  if (explanation !== undefined) parts.push({ type: "refusal", text: explanation });
  const hasToolCalls = parts.some((part) => part.type === "tool-call" && part.serverSide !== true);
  return {
    id: textOf(body.id),
    model: textOf(body.model),
    createdAt: 0,
    parts,
    finish: decodeFinish(body.stop_reason, body.stop_sequence, hasToolCalls),
    ...compact({ usage: decodeUsage(body.usage) }),
  };
}

/** Streams have no event for an empty text either. */
function saysSomething(part: ContentPart): boolean {
  return part.type !== "text" || part.text !== "" || (part.citations?.length ?? 0) > 0;
}

/** Why the model refused, in words for the user. */
export function refusalText(stopDetails: unknown): string | undefined {
  if (!isObject(stopDetails) || stopDetails.type !== "refusal") return undefined;
  return nonEmptyText(stopDetails.explanation);
}
