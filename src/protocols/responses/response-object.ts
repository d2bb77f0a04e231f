// The response object: the answer with an echo of its request. Strictly typed clients need every field.

import type { Usage } from "../../generation/usage.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { AnswerContext } from "../protocol.ts";
import { responseId } from "./sequence.ts";
import { encodeUsage } from "./usage.ts";
import { isGiven, objectOf } from "./wire.ts";

export interface Identity {
  id: string;
  createdAt: number;
}

export interface ResponseState {
  status: "in_progress" | "completed" | "incomplete" | "failed";
  error: { code: string; message: string } | null;
  incomplete_details: { reason: string } | null;
  output: readonly JsonObject[];
  /** Undefined: not known yet. */
  usage: { counts: Usage | undefined } | undefined;
}

/** The members that stay the same in all snapshots of an answer. */
export interface ResponseFrame {
  head: JsonObject;
  echo: JsonObject;
}

export function createFrame(identity: Identity, context: AnswerContext): ResponseFrame {
  return {
    head: {
      id: responseId(identity.id, context),
      object: "response",
      created_at: identity.createdAt > 0 ? identity.createdAt : context.createdAt,
    },
    echo: echoOf(context),
  };
}

export function responseObject({ head, echo }: ResponseFrame, state: ResponseState): JsonObject {
  const { status, error, incomplete_details, output, usage } = state;
  return {
    ...head,
    status,
    error,
    incomplete_details,
    ...echo,
    output,
    usage: usage === undefined ? null : encodeUsage(usage.counts),
  };
}

/** A null in the request counts as left out. */
const ECHOED_DEFAULTS: JsonObject = {
  background: false,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  prompt_cache_key: null,
  safety_identifier: null,
  service_tier: "default",
  store: true,
  temperature: null,
  tool_choice: "auto",
  tools: [],
  top_logprobs: 0,
  top_p: null,
  truncation: "disabled",
};

function echoOf({ model, request }: AnswerContext): JsonObject {
  const body = request.origin.protocol === "responses" ? request.origin.body : {};
  const echo: JsonObject = { model };
  for (const [name, usual] of Object.entries(ECHOED_DEFAULTS)) echo[name] = isGiven(body[name]) ? body[name] : usual;
  const { effort = null, summary = null } = objectOf(body.reasoning);
  const text = objectOf(body.text);
  return {
    ...echo,
    reasoning: { effort, summary },
    text: { ...text, format: isGiven(text.format) ? text.format : { type: "text" } },
    // Typed as a string or absent, never null.
    ...(typeof body.user === "string" && { user: body.user }),
  };
}
