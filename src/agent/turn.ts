// A turn: the model is asked, its calls are carried out, and it is asked again with their results, until it is done.

import type { Message } from "../generation/content.ts";
import type { GenerationResult } from "../generation/result.ts";
import { compact } from "../lib/json.ts";
import { createSerial } from "../lib/serial.ts";
import type { SessionChoices, StopReason, TurnEnd, TurnParts } from "./agent.ts";
import { type Answered, brokenAnswer, readAnswer } from "./answer-message.ts";
import { ContextKeeper } from "./context/context-keeper.ts";
import { type CallOutcome, callModel } from "./model-call.ts";
import { isRefusedForGood, isTooLong, takesNoTools } from "./model-failure.ts";
import { requestFrame, withMessages } from "./model-request.ts";
import { Outlet } from "./outlet.ts";
import { systemPrompt } from "./prompts.ts";
import { carryOutAll, cutOffResults } from "./tool-calls.ts";
import { type ToolSet, toolSet } from "./tool-set.ts";
import { TurnTranscript } from "./transcript.ts";
import { UsageSum } from "./usage-sum.ts";

interface AgentTurn {
  parts: TurnParts;
  /** Number of messages from earlier turns. */
  earlier: number;
  /** Aborts when the turn is cancelled, by the caller or by the answer to a question. */
  signal: AbortSignal;
  cancel(): void;
  outlet: Outlet;
  transcript: TurnTranscript;
  context: ContextKeeper;
  usage: UsageSum;
  inTurn<Result>(ask: () => Promise<Result>): Promise<Result>;
  /** Models that take none, as this turn has found out. */
  withoutTools: Set<string>;
}

/**
 * Throws ModelFailure when the model gives no answer. The conversation is well-formed on every way out, and nothing is shown
 * any more.
 */
export async function runTurn(parts: TurnParts): Promise<TurnEnd> {
  const turn = newTurn(parts);
  const { outlet, signal, transcript, usage } = turn;
  try {
    return { stopReason: await converse(turn), ...compact({ usage: usage.total }) };
  } catch (error) {
    if (!signal.aborted) throw error;
    transcript.keepPrompt();
    return { stopReason: "cancelled", ...compact({ usage: usage.total }) };
  } finally {
    outlet.close();
  }
}

function newTurn(parts: TurnParts): AgentTurn {
  const { history, editor, model, measure = { ratio: 1 } } = parts;
  const own = new AbortController();
  const outlet = new Outlet(editor);
  const questions = createSerial(MAX_QUESTIONS);
  const notice = (text: string) => outlet.tell({ type: "notice", text });
  return {
    parts,
    earlier: history.length,
    signal: AbortSignal.any([parts.signal, own.signal]),
    cancel: () => own.abort(),
    outlet,
    transcript: new TurnTranscript(parts),
    context: new ContextKeeper({ model, measure, notice }),
    usage: new UsageSum(),
    // An answer has fewer calls than may wait.
    inTurn: (ask) => questions.run(ask) as ReturnType<typeof ask>,
    withoutTools: new Set(),
  };
}

const MAX_QUESTIONS = 1_000;

async function converse(turn: AgentTurn): Promise<StopReason> {
  const { parts, signal, transcript } = turn;
  for (let count = 0; count < parts.maxTurns; count++) {
    signal.throwIfAborted();
    const choices = parts.choices();
    const tools = toolSet(parts, choices.mode);
    const answer = readAnswer(await ask(turn, choices, tools), (said) => transcript.distinct(said));
    await keep(turn, answer, choices, tools);
    signal.throwIfAborted();
    if (answer.stop !== undefined) return answer.stop;
  }
  return "max_turn_requests";
}

/** The answer and the results of its calls become part of the conversation in one step. */
async function keep(
  turn: AgentTurn,
  { message, calls, isCut }: Answered,
  choices: SessionChoices,
  tools: ToolSet,
): Promise<void> {
  const { parts, transcript } = turn;
  if (message === undefined) return;
  if (calls.length === 0) {
    transcript.add([message]);
    return;
  }
  const { signal, outlet, inTurn, cancel } = turn;
  const frame = { ...parts, signal, outlet, inTurn, cancel, tools, mode: choices.mode };
  const results = isCut ? cutOffResults(calls) : await carryOutAll(calls, frame);
  transcript.add([message, { role: "user", parts: results }]);
}

/** How often a call is repeated because of what the model has said of it: too long, no tools. */
const MAX_REPAIRS = 2;

async function ask(turn: AgentTurn, choices: SessionChoices, tools: ToolSet): Promise<GenerationResult> {
  const { parts, signal, outlet, transcript, context } = turn;
  const { model } = parts;
  let isShortened = false;
  for (let repairs = 0; ; repairs++) {
    const request = requestFor(turn, choices, tools);
    const outcome = await callModel(request, {
      model,
      signal,
      tell: (update) => outlet.tell(update),
      begun: () => transcript.keepPrompt(),
    });
    noteUsage(turn, outcome, choices);
    if (outcome.kind === "answer") return outcome.result;
    const { said } = outcome;
    if (outcome.kind === "failed" && said.length === 0 && repairs < MAX_REPAIRS) {
      const { failure } = outcome;
      if (isTooLong(failure) && !isShortened) {
        isShortened = true;
        context.learnRefusal(choices.model);
        continue;
      }
      if (takesNoTools(failure) && request.tools.length > 0) {
        turn.withoutTools.add(choices.model);
        outlet.tell({ type: "notice", text: `${choices.model} takes no tools: it can only talk.` });
        continue;
      }
    }
    keepBroken(turn, outcome);
    throw outcome.kind === "failed" ? outcome.failure : signal.reason;
  }
}

function requestFor(
  { parts, transcript, context, earlier, withoutTools }: AgentTurn,
  choices: SessionChoices,
  tools: ToolSet,
) {
  const { cwd, directories, model, promptCacheKey } = parts;
  const offered = withoutTools.has(choices.model) ? [] : tools.offered;
  const instructions = systemPrompt({ mode: choices.mode, cwd, directories, tools: offered });
  const frame = requestFrame({ choices, instructions, tools: offered, promptCacheKey });
  const readsImages = model.readsImages?.(choices.model) !== false;
  return withMessages(frame, context.fit(transcript.messages, frame, earlier), readsImages);
}

function noteUsage(
  { parts, outlet, context, usage: sum }: AgentTurn,
  { usage }: CallOutcome,
  { model }: SessionChoices,
): void {
  if (usage === undefined) return;
  sum.add(usage);
  context.learn(usage);
  const size = parts.model.contextWindow(model);
  if (size !== undefined) outlet.tell({ type: "usage", used: usage.input.total + usage.output.total, size });
}

/** Keeps the usable part of an answer that broke off. */
function keepBroken({ transcript }: AgentTurn, outcome: Exclude<CallOutcome, { kind: "answer" }>): void {
  const { said } = outcome;
  // A prompt that cannot be understood is forgotten, as the transcript says.
  if (outcome.kind === "failed" && said.length === 0 && isRefusedForGood(outcome.failure)) return;
  const message: Message | undefined = brokenAnswer(said);
  transcript.add(message === undefined ? [] : [message]);
}
