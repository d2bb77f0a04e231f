// POST /v1/chat/completions of the demo backend, plain and streamed.

import { type DemoChoice, type DemoContext, type DemoForm, newId, respond } from "./answer.ts";
import { limitText } from "./limit-text.ts";
import { chatReply, messageText, numbered } from "./reply.ts";
import { type ChatRequest, chatRequestSchema, readRequest } from "./requests.ts";
import { schemaExample } from "./schema-example.ts";
import { countTokens } from "./tokens.ts";
import { chooseToolCall, type ToolCall } from "./tool-choice.ts";

interface ChatChoice extends DemoChoice {
  /** Its input is what is written, in place of a text. */
  call?: ToolCall & { id: string };
}

export async function answerChat(request: Request, context: DemoContext): Promise<Response> {
  const body = await readRequest(request, chatRequestSchema);
  const choices = createChoices(body, context);
  return respond(FORM, body, { promptTokens: promptTokens(body), choices }, request, context);
}

function createChoices(body: ChatRequest, { random }: DemoContext): ChatChoice[] {
  const call = chooseToolCall(body);
  const total = body.n ?? 1;
  const maxTokens = body.max_completion_tokens ?? body.max_tokens;
  return Array.from({ length: total }, (_, index) => {
    if (!call) return limitText(textOf(body, index, total), { maxTokens, stop: body.stop });
    const input = limitText(call.input, { maxTokens });
    const finishReason = input.finishReason === "stop" ? "tool_calls" : input.finishReason;
    return { ...input, finishReason, call: { ...call, id: newId("call_", random) } };
  });
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

const FORM: DemoForm<ChatChoice> = {
  idPrefix: "chatcmpl-",
  object: "chat.completion",
  chunkObject: "chat.completion.chunk",
  choice: (index, content, finishReason) => ({ index, ...content, logprobs: null, finish_reason: finishReason }),
  whole: ({ call }, text) => ({
    message: {
      role: "assistant",
      content: call ? null : text,
      refusal: null,
      ...(call && { tool_calls: [{ id: call.id, ...callBody(call, text) }] }),
    },
  }),
  opening({ call }) {
    const role = { delta: { role: "assistant", content: call ? null : "", refusal: null } };
    return call ? [role, { delta: { tool_calls: [{ index: 0, id: call.id, ...callBody(call, "") }] } }] : [role];
  },
  /** Later fragments of a call carry no id, type or name: some clients would overwrite the first ones. */
  piece({ call }, text) {
    if (!call) return { delta: { content: text } };
    const fragment = call.type === "function" ? { function: { arguments: text } } : { custom: { input: text } };
    return { delta: { tool_calls: [{ index: 0, ...fragment }] } };
  },
  end: { delta: {} },
};

function callBody(call: ToolCall, input: string): object {
  return call.type === "function"
    ? { type: "function", function: { name: call.name, arguments: input } }
    : { type: "custom", custom: { name: call.name, input } };
}
