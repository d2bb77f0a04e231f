// Asks one recorded request again, compares the answers, and has them judged.

import type { ContentPart } from "../generation/content.ts";
import { abortableDelay } from "../lib/abortable-delay.ts";
import { parseObject } from "../lib/json.ts";
import { clientProtocol } from "../protocols/registry.ts";
import { answerText, type ReadAnswer, readAnswer, readAsked } from "./conversation.ts";
import { judgeBody, readJudgement } from "./judge.ts";
import type { Bodies, RecordedBody, RecordingFacts } from "./recording.ts";
import type { ReplayAnswer, ReplayResult, ReplaySpec, ToolCallText } from "./replay.ts";
import { replayBody } from "./replay-body.ts";

/** One request of a replay; the path may name the model. */
export interface ReplayedRequest {
  operation: string;
  path: string;
  /** Undefined: the one that the path and the body name. */
  model: string | undefined;
  body: Uint8Array;
  creator: ReplaySpec["creator"];
}

export interface AnsweredAgain {
  status: number;
  contentType: string;
  /** Undefined: it is too long. */
  body: Uint8Array | undefined;
  requestId: string;
  retryAfterMs: number | undefined;
  facts: Pick<ReplayAnswer, "backend" | "inputTokens" | "outputTokens" | "cost" | "firstByteMs" | "durationMs">;
}

/** Asks the gateway itself, in the class of batches and as the caller that the replay names. */
export type AskAgain = (request: ReplayedRequest, signal: AbortSignal) => Promise<AnsweredAgain>;

interface Replayed {
  spec: ReplaySpec;
  facts: RecordingFacts;
  bodies: Bodies;
  position: number;
  signal: AbortSignal;
}

const ATTEMPTS = 3;
const LONGEST_WAIT_MS = 30_000;
const USUAL_WAIT_MS = 1_000;
/** Limits, and backends that are not there yet. */
const PASSING: readonly number[] = [429, 503];
/** Of one text of an answer. */
const MOST_CHARACTERS = 256 * 1024;
const MOST_CALLS = 100;
/** Judges are asked in the format that all others are like. */
const JUDGED_AS = clientProtocol(undefined).name;
const JUDGE_PATH = "/v1/chat/completions";

/** Of a request that is not asked again. @param answer - undefined: it cannot be read */
export function notAsked(facts: RecordingFacts, answer: RecordedBody | undefined, reason: string): ReplayResult {
  return { recorded: recordedAnswer(facts, answer), replayed: null, reason, identical: null, judged: null };
}

/** Rejects with the reason of the signal. */
export async function replayOne(ask: AskAgain, replayed: Replayed): Promise<ReplayResult> {
  const { spec, facts, bodies, signal } = replayed;
  const { operation } = facts;
  const body = replayBody(operation, bodies.request, spec);
  if (typeof body === "string") return notAsked(facts, bodies.answer, body);
  const recorded = recordedAnswer(facts, bodies.answer);
  const model = spec.ask ?? undefined;
  const told = await patiently(ask, { operation, path: bodies.path, model, body, creator: spec.creator }, signal);
  const answered: ReplayAnswer = {
    ...factsIn(readTold(operation, told)),
    ...told.facts,
    status: told.status,
    requestId: told.requestId,
  };
  // What was not kept cannot be compared.
  const isExact = bodies.answer.incomplete === null && readAsked(operation, bodies.request)?.sampling.temperature === 0;
  return {
    recorded,
    replayed: answered,
    reason: null,
    identical: isExact ? isSame(recorded, answered) : null,
    judged: await judged(ask, replayed, [recorded, answered]),
  };
}

/** Waits and asks again where limits are in the way. */
async function patiently(ask: AskAgain, request: ReplayedRequest, signal: AbortSignal): Promise<AnsweredAgain> {
  for (let attempt = 1; ; attempt++) {
    const answer = await ask(request, signal);
    signal.throwIfAborted();
    const waitMs = answer.retryAfterMs ?? USUAL_WAIT_MS;
    if (!PASSING.includes(answer.status) || attempt === ATTEMPTS || waitMs > LONGEST_WAIT_MS) return answer;
    await abortableDelay(waitMs, signal);
    signal.throwIfAborted();
  }
}

async function judged(
  ask: AskAgain,
  { spec: { judge, creator }, bodies, position, signal }: Replayed,
  [recorded, replayed]: [ReplayAnswer, ReplayAnswer],
): Promise<ReplayResult["judged"]> {
  if (judge === null || replayed.status >= 400) return null;
  const { incomplete } = bodies.answer;
  if (incomplete !== null)
    return { better: null, reason: `The recorded answer was not kept as a whole (${incomplete}).` };
  // Models prefer the first answer that they read: each side stands first in every other request.
  const isSwapped = position % 2 === 1;
  const { model, rubric } = judge;
  const answers = isSwapped ? [replayed, recorded] : [recorded, replayed];
  const question = new TextDecoder().decode(bodies.request.content);
  const body = judgeBody({ model, rubric, question, answers });
  const told = await patiently(ask, { operation: JUDGED_AS, path: JUDGE_PATH, model, body, creator }, signal);
  return readJudgement(readTold(JUDGED_AS, told), isSwapped);
}

function readTold(operation: string, { body, contentType, status }: AnsweredAgain): ReadAnswer | undefined {
  if (body === undefined) return { parts: [], error: "The answer is too long to be read." };
  return readAnswer(operation, { content: body, contentType }, status);
}

const NOTHING_READ = {
  text: "",
  toolCalls: [] as readonly ToolCallText[],
  finish: null as string | null,
  error: null as string | null,
};

/** @param read - undefined: it cannot be read */
function factsIn(read: ReadAnswer | undefined): typeof NOTHING_READ {
  if (read === undefined) return NOTHING_READ;
  const { parts, finish, error } = read;
  return {
    text: answerText(parts).slice(0, MOST_CHARACTERS),
    toolCalls: parts.flatMap(callOf).slice(0, MOST_CALLS),
    finish: finish ?? null,
    error: error ?? null,
  };
}

function callOf(part: ContentPart): ToolCallText[] {
  return part.type === "tool-call" ? [{ name: part.name, arguments: part.arguments.slice(0, MOST_CHARACTERS) }] : [];
}

/** @param answer - undefined: it cannot be read */
function recordedAnswer(facts: RecordingFacts, answer: RecordedBody | undefined): ReplayAnswer {
  const { status, backend, inputTokens, outputTokens, cost, firstByteMs, durationMs } = facts;
  return {
    ...factsIn(answer && readAnswer(facts.operation, answer, status)),
    ...{ status, backend, inputTokens, outputTokens, cost, firstByteMs, durationMs },
    requestId: facts.id,
  };
}

function isSame(one: ReplayAnswer, other: ReplayAnswer): boolean {
  const callsOf = ({ toolCalls }: ReplayAnswer) =>
    toolCalls.map(({ name, arguments: text }) => [name, parseObject(text) ?? text]);
  return one.text === other.text && Bun.deepEquals(callsOf(one), callsOf(other)) && other.status < 400;
}
