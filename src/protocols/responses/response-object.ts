// The response object: the answer with an echo of its request. Strictly typed clients need every field.

import type { Usage } from "../../generation/usage.ts";
import { isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import type { AnswerContext } from "../protocol.ts";
import { objectOf, objectsOf, textOf } from "../reading.ts";
import { recounted } from "../stream-join.ts";
import { responseId } from "./sequence.ts";
import { encodeUsage } from "./usage.ts";

interface Identity {
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
  head: { id: string; object: "response"; created_at: number };
  echo: JsonObject;
  now(): number;
}

export function createFrame(identity: Identity, context: AnswerContext): ResponseFrame {
  return {
    head: {
      id: responseId(identity.id, context),
      object: "response",
      created_at: identity.createdAt > 0 ? identity.createdAt : context.createdAt,
    },
    echo: echoOf(context),
    now: context.now ?? (() => context.createdAt),
  };
}

/** The same for an answer that another backend has begun. */
export function frameOf(
  sent: { id?: string; created_at?: number; model?: string },
  context: AnswerContext,
): ResponseFrame {
  const frame = createFrame({ id: "", createdAt: 0 }, context);
  const { model, ...head } = sent;
  return { ...frame, head: { ...frame.head, ...head }, echo: { ...frame.echo, ...(model !== undefined && { model }) } };
}

export function responseObject({ head, echo, now }: ResponseFrame, state: ResponseState): JsonObject {
  const { status, error, incomplete_details, output, usage } = state;
  return {
    ...head,
    // The backend's clock may be ahead.
    completed_at: status === "completed" ? Math.max(now(), head.created_at) : null,
    status,
    error,
    incomplete_details,
    ...echo,
    output,
    usage: usage === undefined ? null : encodeUsage(usage.counts),
  };
}

/** The final response of an answer that a backend of this format has finished for another one, with all that it says of it. */
export function withOwnMembers(response: JsonObject, own: JsonObject): JsonObject {
  const { id, created_at, model, output, usage } = response;
  return {
    ...response,
    ...own,
    ...{ id, created_at, model, output },
    ...(isObject(own.usage) && { usage: recounted(own.usage, objectOf(usage), ["input_tokens", "output_tokens"]) }),
    // Some engines repeat the text here, as the official SDK adds it.
    ...(typeof own.output_text === "string" && { output_text: objectsOf(output).map(textOfItem).join("") }),
  };
}

function textOfItem({ type, content }: JsonObject): string {
  if (type !== "message") return "";
  return objectsOf(content)
    .map(({ text }) => textOf(text))
    .join("");
}

/** As the public service shows them; a null in the request counts as left out. */
const ECHOED_DEFAULTS: JsonObject = {
  background: false,
  frequency_penalty: 0,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  presence_penalty: 0,
  previous_response_id: null,
  prompt_cache_key: null,
  safety_identifier: null,
  service_tier: "default",
  store: true,
  temperature: 1,
  tool_choice: "auto",
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: "disabled",
};

function echoOf({ model, request }: AnswerContext): JsonObject {
  const body = request.origin.protocol === "responses" ? request.origin.body : {};
  const echo: JsonObject = { model };
  for (const [name, usual] of Object.entries(ECHOED_DEFAULTS)) echo[name] = isPresent(body[name]) ? body[name] : usual;
  const { effort = null, summary = null } = objectOf(body.reasoning);
  const text = objectOf(body.text);
  return {
    ...echo,
    tools: objectsOf(echo.tools).map(shownTool),
    reasoning: { effort, summary },
    text: { ...text, format: isPresent(text.format) ? text.format : { type: "text" } },
    // Typed as a string or absent, never null.
    ...(typeof body.user === "string" && { user: body.user }),
  };
}

/** A function with every member of its type: what the client left out is not enforced. */
function shownTool(tool: JsonObject): JsonObject {
  return tool.type === "function" ? { ...FUNCTION_DEFAULTS, ...tool } : tool;
}

const FUNCTION_DEFAULTS: JsonObject = { description: null, parameters: null, strict: false };
