// A local engine with a model that always answers a question alike, and that goes on with a beginning of its answer as
// real engines do: vLLM when it is asked to, llama.cpp whenever the last message is the assistant's.

import type { Answer, RecordedRequest } from "./fake-backend.ts";
import { eventStream, failure, sseEvent } from "./openai-answers.ts";

export interface EngineOptions {
  kind: "vllm" | "llamacpp";
  /** What the model thinks and says to a question. */
  answer(question: string): { thought?: string; text: string };
  /** The chat template cuts off blanks around a message. */
  trims?: boolean;
  /** How an answer is parted into tokens. */
  tokens?: RegExp;
  betweenTokensMs?: number;
  /** Puts another member in the place of reasoning_content. */
  reasoningField?: string;
}

interface Message {
  role: string;
  content: string;
  reasoning?: string;
  reasoning_content?: string;
}

interface Body {
  model: string;
  stream?: boolean;
  stream_options?: { include_usage?: boolean };
  messages: Message[];
  prompt?: string;
  max_tokens?: number;
  continue_final_message?: boolean;
  add_generation_prompt?: boolean;
}

/** What vLLM and llama.cpp say, in their own words. */
const BOTH_FLAGS = "Cannot set both `continue_final_message` and `add_generation_prompt` to True.";
const TWO_TURNS = "Cannot have 2 or more assistant messages at the end of the list.";
const THINKING = "Assistant response prefill is incompatible with enable_thinking.";

let answers = 0;

/** The answer of such an engine to one request. */
export function engineAnswer(request: RecordedRequest, options: EngineOptions): Answer {
  const body = request.json<Body>();
  const id = `answer-${++answers}`;
  return request.path.endsWith("/completions") && body.prompt !== undefined
    ? textAnswer(body, body.prompt, id, options)
    : chatAnswer(body, id, options);
}

/** The question is the first line of the prompt. */
function textAnswer(body: Body, prompt: string, id: string, options: EngineOptions): Answer {
  const end = prompt.indexOf("\n") + 1;
  const rest = restOf(options.answer(prompt.slice(0, end).trim()).text, prompt.slice(end));
  const { tokens, finish } = limited(tokensOf(rest, options), body);
  const choice = (text: string, finish_reason: string | null) => [{ index: 0, text, logprobs: null, finish_reason }];
  return written(body, id, "text_completion", options, tokensOf(prompt, options).length, tokens.length, {
    events: [...tokens.map((token) => choice(token, null)), choice("", finish)],
    whole: choice(tokens.join(""), finish),
  });
}

function chatAnswer(body: Body, id: string, options: EngineOptions): Answer {
  const last = body.messages.at(-1) as Message;
  const answer = options.answer(body.messages.find(({ role }) => role === "user")?.content ?? "");
  const isPrefilled =
    last.role === "assistant" && (options.kind === "llamacpp" || body.continue_final_message === true);
  if (body.continue_final_message === true && body.add_generation_prompt !== false) {
    if (options.kind === "vllm" && body.add_generation_prompt === true) return failure(400, BOTH_FLAGS);
  }
  if (options.kind === "llamacpp" && isPrefilled) {
    if (body.messages.at(-2)?.role === "assistant") return failure(400, TWO_TURNS);
    if (answer.thought !== undefined) return failure(400, THINKING);
  }
  let { thought = "", text } = answer;
  if (isPrefilled) {
    const told = last.reasoning_content ?? last.reasoning ?? "";
    // The template closes the thoughts of a message that has begun to speak.
    text =
      told === thought ? restOf(text, options.trims ? last.content.trim() : last.content) : "I have lost my thoughts.";
    thought = "";
  } else if (last.role === "assistant") {
    text = `As I was saying: ${text}`; // a turn that is closed, then one more
  }
  const field = options.reasoningField ?? "reasoning_content";
  const { tokens, finish } = limited([...tokensOf(thought, options), ...tokensOf(text, options)], body);
  const thoughts = tokensOf(thought, options).length;
  const asked = body.messages.reduce((sum, { content }) => sum + tokensOf(content, options).length, 0);
  const choice = (delta: object, finish_reason: string | null) => [{ index: 0, delta, finish_reason }];
  const content = tokens.slice(thoughts).join("");
  return written(body, id, "chat.completion", options, asked, tokens.length, {
    events: [
      choice({ role: "assistant", content: "" }, null),
      ...tokens.map((token, index) => choice({ [index < thoughts ? field : "content"]: token }, null)),
      choice({}, finish),
    ],
    whole: [{ index: 0, message: { role: "assistant", content, [field]: thought }, finish_reason: finish }],
  });
}

/** A model that is told something else than what it would have said goes on with something else, too. */
function restOf(whole: string, beginning: string): string {
  return whole.startsWith(beginning) ? whole.slice(beginning.length) : " I have lost the thread.";
}

function tokensOf(text: string, { tokens = /\S+\s*|\s+/g }: EngineOptions): string[] {
  return text.match(tokens) ?? [];
}

function limited(all: readonly string[], { max_tokens }: Body): { tokens: readonly string[]; finish: string } {
  const isCut = max_tokens !== undefined && all.length > max_tokens;
  return { tokens: isCut ? all.slice(0, max_tokens) : all, finish: isCut ? "length" : "stop" };
}

function written(
  { model, stream, stream_options }: Body,
  id: string,
  object: string,
  { betweenTokensMs }: EngineOptions,
  prompt_tokens: number,
  completion_tokens: number,
  { events, whole }: { events: readonly unknown[]; whole: unknown },
): Answer {
  const head = { id, object: stream === true && object === "chat.completion" ? `${object}.chunk` : object, model };
  const usage = { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
  const chunk = (more: object) => sseEvent({ ...head, created: 1_790_000_000 + answers, ...more });
  if (stream !== true) return { body: JSON.stringify({ ...head, created: 1_790_000_000, choices: whole, usage }) };
  return eventStream(
    [
      ...events.map((choices) => chunk({ choices })),
      ...(stream_options?.include_usage === true ? [chunk({ choices: [], usage })] : []),
      "data: [DONE]\n\n",
    ],
    betweenTokensMs === undefined ? {} : { betweenChunksMs: betweenTokensMs },
  );
}
