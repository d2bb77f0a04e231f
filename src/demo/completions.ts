// POST /v1/completions (the older text form) of the demo backend, plain and streamed.

import { type DemoChoice, type DemoContext, type DemoForm, respond } from "./answer.ts";
import { limitText } from "./limit-text.ts";
import { completionReply, numbered } from "./reply.ts";
import { type CompletionRequest, completionRequestSchema, invalidField, listOf, readRequest } from "./requests.ts";
import { countInput, splitTokens } from "./tokens.ts";

/** Most choices of one request: prompts times n. */
const MAX_CHOICES = 128;

const FORM: DemoForm<DemoChoice> = {
  idPrefix: "cmpl-",
  object: "text_completion",
  chunkObject: "text_completion",
  choice: (index, content, finishReason) => ({ ...content, index, logprobs: null, finish_reason: finishReason }),
  whole: (_, text) => ({ text }),
  opening: () => [],
  piece: (_, text) => ({ text }),
  end: { text: "" },
};

export async function answerCompletion(request: Request, context: DemoContext): Promise<Response> {
  const body = await readRequest(request, completionRequestSchema);
  const prompts = listOf(body.prompt ?? "");
  const promptTokens = prompts.reduce((sum, prompt) => sum + countInput(prompt), 0);
  return respond(FORM, body, { promptTokens, choices: createChoices(body, prompts) }, request, context);
}

/** Without max_tokens the whole answer is given; the 16 tokens of the public API would cut every example. */
function createChoices(body: CompletionRequest, prompts: readonly (string | number[])[]): DemoChoice[] {
  const samples = body.n ?? 1;
  if (prompts.length * samples > MAX_CHOICES) {
    throw invalidField("n", `prompts times n must be at most ${MAX_CHOICES}`);
  }
  const limits = { maxTokens: body.max_tokens, stop: body.stop };
  return prompts.flatMap((prompt) => {
    const text = typeof prompt === "string" ? prompt : ""; // token ids mean nothing to this model
    const echo = body.echo ? splitTokens(text) : [];
    return Array.from({ length: samples }, (_, sample) => {
      const made = limitText(numbered(completionReply(text), sample, samples), limits);
      return { ...made, tokens: [...echo, ...made.tokens], echoed: echo.length };
    });
  });
}
