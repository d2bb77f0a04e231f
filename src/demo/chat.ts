// POST /v1/chat/completions of the demo backend, plain and streamed.

import { createdNow, type DemoContext, newId, streamResponse, tokenSteps, toUsage, type Usage } from "./answer.ts";
import { type LimitedText, limitText } from "./limit-text.ts";
import { DONE_EVENT, dataEvent } from "./paced-stream.ts";
import { chatReply, messageText, numbered } from "./reply.ts";
import { type ChatRequest, chatRequestSchema, readRequest, stopSequences } from "./requests.ts";
import { schemaExample } from "./schema-example.ts";
import { countTokens } from "./tokens.ts";
import { chooseToolCall, type ToolCall } from "./tool-choice.ts";

interface Choice {
  /** Of the text, or of the call's input. */
  tokens: readonly string[];
  finishReason: "stop" | "length" | "tool_calls";
  call: (ToolCall & { id: string }) | undefined;
}

interface ChatAnswer {
  id: string;
  created: number;
  model: string;
  choices: readonly Choice[];
  usage: Usage;
}

export async function answerChat(request: Request, context: DemoContext): Promise<Response> {
  const body = await readRequest(request, chatRequestSchema);
  const answer = createAnswer(body, context);
  if (!body.stream) return Response.json(toCompletion(answer));
  const withUsage = body.stream_options?.include_usage ?? false;
  return streamResponse(chunkSteps(answer, withUsage), request.signal, context);
}

function createAnswer(body: ChatRequest, context: DemoContext): ChatAnswer {
  const call = chooseToolCall(body);
  const total = body.n ?? 1;
  const choices = Array.from({ length: total }, (_, index): Choice => {
    const maxTokens = body.max_completion_tokens ?? body.max_tokens ?? undefined;
    if (!call) {
      return { ...limitText(textOf(body, index, total), { maxTokens, stop: stopSequences(body) }), call: undefined };
    }
    const input: LimitedText = limitText(call.input, { maxTokens, stop: [] });
    return {
      tokens: input.tokens,
      finishReason: input.finishReason === "length" ? "length" : "tool_calls",
      call: { ...call, id: newId("call_", context.random) },
    };
  });
  const completionTokens = choices.reduce((sum, choice) => sum + choice.tokens.length, 0);
  return {
    id: newId("chatcmpl-", context.random),
    created: createdNow(context),
    model: body.model,
    choices,
    usage: toUsage(promptTokens(body), completionTokens),
  };
}

function textOf(body: ChatRequest, index: number, total: number): string {
  const reply = chatReply(body.messages);
  const format = body.response_format;
  if (format?.type === "json_object") return JSON.stringify({ answer: reply });
  if (format?.type === "json_schema") return JSON.stringify(schemaExample(format.json_schema.schema));
  return numbered(reply, index, total);
}

const TOKENS_PER_MESSAGE = 3;
/** An image, a sound or a file; real models count by size. */
const TOKENS_PER_ATTACHMENT = 85;

/** An estimate: the tokens of all texts, calls and tool definitions, and a flat price for everything else. */
function promptTokens(body: ChatRequest): number {
  let total = body.tools?.length ? countTokens(JSON.stringify(body.tools)) : 0;
  for (const message of body.messages) {
    total += TOKENS_PER_MESSAGE + countTokens(messageText(message));
    if (message.tool_calls) total += countTokens(JSON.stringify(message.tool_calls));
    if (Array.isArray(message.content)) {
      total += TOKENS_PER_ATTACHMENT * message.content.filter((part) => typeof part.text !== "string").length;
    }
  }
  return total;
}

function toCompletion({ id, created, model, choices, usage }: ChatAnswer): object {
  return {
    id,
    object: "chat.completion",
    created,
    model,
    choices: choices.map(({ tokens, finishReason, call }, index) => ({
      index,
      message: {
        role: "assistant",
        content: call ? null : tokens.join(""),
        refusal: null,
        ...(call && { tool_calls: [{ id: call.id, ...callBody(call, tokens.join("")) }] }),
      },
      logprobs: null,
      finish_reason: finishReason,
    })),
    usage,
  };
}

function callBody(call: ToolCall, input: string): object {
  return call.type === "function"
    ? { type: "function", function: { name: call.name, arguments: input } }
    : { type: "custom", custom: { name: call.name, input } };
}

/** Role first, then the text or the call, then the finish reason, then usage if asked, then the end mark. */
function* chunkSteps(answer: ChatAnswer, withUsage: boolean): Generator<string, void> {
  const { id, created, model, choices, usage } = answer;
  const envelope = { id, object: "chat.completion.chunk", created, model };
  const chunk = (index: number, delta: object, finishReason: string | null = null) =>
    dataEvent({
      ...envelope,
      choices: [{ index, delta, logprobs: null, finish_reason: finishReason }],
      ...(withUsage && { usage: null }),
    });

  yield choices
    .map(({ call }, index) => {
      const role = chunk(index, { role: "assistant", content: call ? null : "", refusal: null });
      return call ? role + chunk(index, { tool_calls: [{ index: 0, id: call.id, ...callBody(call, "") }] }) : role;
    })
    .join("");

  yield* tokenSteps(choices, (index, token) => chunk(index, tokenDelta(choices[index]?.call, token)));

  const finish = choices.map(({ finishReason }, index) => chunk(index, {}, finishReason)).join("");
  const usageChunk = withUsage ? dataEvent({ ...envelope, choices: [], usage }) : "";
  yield finish + usageChunk + DONE_EVENT;
}

/** Later fragments of a call carry no id, type or name: some clients would overwrite the first ones. */
function tokenDelta(call: ToolCall | undefined, token: string): object {
  if (!call) return { content: token };
  const fragment = call.type === "function" ? { function: { arguments: token } } : { custom: { input: token } };
  return { tool_calls: [{ index: 0, ...fragment }] };
}
