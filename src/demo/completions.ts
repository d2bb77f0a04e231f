// POST /v1/completions (the older text form) of the demo backend, plain and streamed.

import { createdNow, type DemoContext, newId, streamResponse, tokenSteps, toUsage, type Usage } from "./answer.ts";
import { type LimitedText, limitText } from "./limit-text.ts";
import { DONE_EVENT, dataEvent } from "./paced-stream.ts";
import { completionReply, numbered } from "./reply.ts";
import {
  type CompletionRequest,
  completionRequestSchema,
  invalidField,
  readRequest,
  stopSequences,
} from "./requests.ts";
import { countTokens, splitTokens } from "./tokens.ts";

/** Of one request: prompts times n. */
const MAX_CHOICES = 128;

interface Choice extends LimitedText {
  /** The prompt in front of the answer, when the request asks for it. */
  echo: string;
}

export async function answerCompletion(request: Request, context: DemoContext): Promise<Response> {
  const body = await readRequest(request, completionRequestSchema);
  const prompts = toPrompts(body.prompt);
  const choices = createChoices(body, prompts);
  const promptTokens = prompts.reduce((sum, prompt) => sum + prompt.tokens, 0);
  const completionTokens = choices.reduce((sum, choice) => sum + choice.tokens.length, 0);
  const usage = toUsage(promptTokens, completionTokens);
  const envelope = {
    id: newId("cmpl-", context.random),
    object: "text_completion",
    created: createdNow(context),
    model: body.model,
  };
  if (body.stream) {
    const asked = body.stream_options?.include_usage ? usage : undefined;
    return streamResponse(chunkSteps(envelope, choices, asked), request.signal, context);
  }
  return Response.json({
    ...envelope,
    choices: choices.map(({ echo, tokens, finishReason }, index) =>
      toChoice(index, echo + tokens.join(""), finishReason),
    ),
    usage,
  });
}

interface Prompt {
  /** undefined for token ids, which mean nothing to this model. */
  text: string | undefined;
  tokens: number;
}

function toPrompts(prompt: CompletionRequest["prompt"]): Prompt[] {
  const list = Array.isArray(prompt) && typeof prompt[0] !== "number" ? (prompt as (string | number[])[]) : [prompt];
  return list.map((entry) => {
    const text = typeof entry === "string" ? entry : undefined;
    return { text, tokens: Array.isArray(entry) ? entry.length : countTokens(text ?? "") };
  });
}

/** Without max_tokens the whole answer is given; the 16 tokens of the public API would cut every example. */
function createChoices(body: CompletionRequest, prompts: readonly Prompt[]): Choice[] {
  const samples = body.n ?? 1;
  if (prompts.length * samples > MAX_CHOICES) {
    throw invalidField("n", `prompts times n must be at most ${MAX_CHOICES}`);
  }
  const limits = { maxTokens: body.max_tokens ?? undefined, stop: stopSequences(body) };
  return prompts.flatMap(({ text }) =>
    Array.from({ length: samples }, (_, sample) => ({
      echo: body.echo ? (text ?? "") : "",
      ...limitText(numbered(completionReply(text), sample, samples), limits),
    })),
  );
}

function toChoice(index: number, text: string, finishReason: string | null): object {
  return { text, index, logprobs: null, finish_reason: finishReason };
}

function* chunkSteps(envelope: object, choices: readonly Choice[], usage: Usage | undefined): Generator<string, void> {
  const chunk = (index: number, text: string, finishReason: string | null = null) =>
    dataEvent({ ...envelope, choices: [toChoice(index, text, finishReason)], ...(usage && { usage: null }) });

  const echoed = choices.map(({ echo, tokens }) => ({ tokens: [...splitTokens(echo), ...tokens] }));
  yield* tokenSteps(echoed, chunk);
  const finish = choices.map(({ finishReason }, index) => chunk(index, "", finishReason)).join("");
  yield finish + (usage ? dataEvent({ ...envelope, choices: [], usage }) : "") + DONE_EVENT;
}
