// What the demo backend accepts: the request bodies of the OpenAI-style API, checked as a strict server checks them.

import { z } from "zod";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";

const model = z.string().min(1, "must not be empty");
const limit = z.int().min(1, "must be at least 1").nullish();
const stop = z.union([z.string(), z.array(z.string()).max(4, "at most 4 sequences")]).nullish();
const sampling = {
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  n: z.int().min(1).max(128).nullish(),
  stop,
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
};

const contentPart = z.looseObject({ type: z.string() });

const message = z.looseObject({
  role: z.enum(["developer", "system", "user", "assistant", "tool", "function"]),
  content: z.union([z.string(), z.array(contentPart)]).nullish(),
});

const functionTool = z.looseObject({
  type: z.literal("function"),
  function: z.looseObject({ name: z.string().min(1), parameters: z.record(z.string(), z.unknown()).nullish() }),
});
const customTool = z.looseObject({ type: z.literal("custom"), custom: z.looseObject({ name: z.string().min(1) }) });
const tool = z.discriminatedUnion("type", [functionTool, customTool]);

const namedFunction = z.looseObject({ type: z.literal("function"), function: z.looseObject({ name: z.string() }) });
const namedCustom = z.looseObject({ type: z.literal("custom"), custom: z.looseObject({ name: z.string() }) });
const allowedTools = z.looseObject({
  type: z.literal("allowed_tools"),
  allowed_tools: z.looseObject({
    mode: z.enum(["auto", "required"]),
    tools: z.array(z.discriminatedUnion("type", [namedFunction, namedCustom])),
  }),
});

export const chatRequestSchema = z.looseObject({
  model,
  messages: z.array(message).min(1, "must not be empty"),
  max_tokens: limit,
  max_completion_tokens: limit,
  tools: z.array(tool).nullish(),
  tool_choice: z
    .union([
      z.enum(["none", "auto", "required"]),
      z.discriminatedUnion("type", [namedFunction, namedCustom, allowedTools]),
    ])
    .nullish(),
  response_format: z
    .discriminatedUnion("type", [
      z.looseObject({ type: z.literal("text") }),
      z.looseObject({ type: z.literal("json_object") }),
      z.looseObject({
        type: z.literal("json_schema"),
        json_schema: z.looseObject({ name: z.string(), schema: z.record(z.string(), z.unknown()).nullish() }),
      }),
    ])
    .nullish(),
  ...sampling,
});

const tokenIds = z.array(z.int().min(0)).min(1, "must not be empty");

export const completionRequestSchema = z.looseObject({
  model,
  prompt: z
    .union([z.string(), tokenIds, z.array(z.string()).min(1), z.array(tokenIds).min(1)], {
      error: "expected a string, a list of strings, a list of token ids, or a list of such lists",
    })
    .nullish(),
  max_tokens: z.int().min(0, "must not be negative").nullish(),
  echo: z.boolean().nullish(),
  ...sampling,
});

export const embeddingRequestSchema = z.looseObject({
  model,
  input: z.union(
    [z.string().min(1), tokenIds, z.array(z.string().min(1)).min(1).max(2048), z.array(tokenIds).min(1).max(2048)],
    {
      error:
        "expected a string, a list of at most 2048 strings, a list of token ids, or a list of such lists; none empty",
    },
  ),
  dimensions: z.int().min(1).max(4096).nullish(),
  encoding_format: z.enum(["float", "base64"]).nullish(),
});

export const imageRequestSchema = z.looseObject({
  model,
  prompt: z.string().min(1, "must not be empty"),
  n: z.int().min(1).max(10).nullish(),
  response_format: z.enum(["url", "b64_json"]).nullish(),
  stream: z.boolean().nullish(),
  partial_images: z.int().min(0).max(3).nullish(),
});

export type ChatRequest = z.output<typeof chatRequestSchema>;
export type ChatMessage = z.output<typeof message>;
export type ChatTool = z.output<typeof tool>;
export type CompletionRequest = z.output<typeof completionRequestSchema>;
export type EmbeddingRequest = z.output<typeof embeddingRequestSchema>;

/** Texts and lists of token ids: one alone, or a list of them. */
export function listOf(input: EmbeddingRequest["input"]): (string | number[])[] {
  if (typeof input === "string") return [input];
  return typeof input[0] === "number" ? [input as number[]] : (input as (string | number[])[]);
}

/** The checked body, or a 400 that names the first field at fault. */
export async function readRequest<Schema extends z.ZodType>(
  request: Request,
  schema: Schema,
): Promise<z.output<Schema>> {
  const text = await request.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (cause) {
    throw new GatewayError(ERRORS.invalidJson, "The request body is not valid JSON.", { cause });
  }
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0] as z.core.$ZodIssue;
  if (issue.path.length === 0) throw new GatewayError(ERRORS.invalidRequest, "The request body must be a JSON object.");
  const param = z.core.toDotPath(issue.path);
  if (valueAt(body, issue.path) !== undefined) throw invalidField(param, issue.message);
  throw new GatewayError(ERRORS.missingParameter, `Missing required parameter: '${param}'.`, { param });
}

function valueAt(body: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((value, key) => (value as Record<PropertyKey, unknown> | undefined)?.[key], body);
}

export function invalidField(param: string, problem: string): GatewayError {
  return new GatewayError(ERRORS.invalidRequest, `Invalid value for '${param}': ${problem}`, { param });
}
