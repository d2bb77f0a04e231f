// Asks recorded requests again, a few at a time, and compares the answers.

import type { ContentPart } from "../generation/content.ts";
import { parseObject } from "../lib/json.ts";
import { randomLetters } from "../lib/random-letters.ts";
import type { Logger } from "../logging/logger.ts";
import { clientProtocol } from "../protocols/registry.ts";
import { answerText, type ReadAnswer, readAnswer, readAsked } from "./conversation.ts";
import { judgeBody, readJudgement } from "./judge.ts";
import type { Bodies, RecordedBody, RecordingFacts } from "./recording.ts";
import type { ReplayAnswer, ReplayItem, ReplayResult, ReplaySpec, StoredReplay, ToolCallText } from "./replay.ts";
import { replayBody } from "./replay-body.ts";
import type { ReplayItemRow, ReplayRows } from "./replay-rows.ts";
import type { StoredRecording } from "./store.ts";
import type { Vault } from "./vault.ts";

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
  body: Uint8Array;
  requestId: string;
  retryAfterMs: number | undefined;
  facts: Pick<ReplayAnswer, "backend" | "inputTokens" | "outputTokens" | "cost" | "firstByteMs" | "durationMs">;
}

/** Asks the gateway itself, in the class of batches and as the caller that the replay names. */
export type AskAgain = (request: ReplayedRequest, signal: AbortSignal) => Promise<AnsweredAgain>;

interface ReplaysParts {
  rows: ReplayRows;
  vault: Vault;
  find(id: string): StoredRecording | undefined;
  read(recording: StoredRecording): Promise<Bodies | undefined>;
  ask: AskAgain;
  wallTime(): number;
  log: Pick<Logger, "warn">;
}

const AT_ONCE = 4;
const ATTEMPTS = 3;
const LONGEST_WAIT_MS = 30_000;
const USUAL_WAIT_MS = 1_000;
/** Of one answer. */
const MOST_CHARACTERS = 256 * 1024;
/** Judges are asked in the format that all others are like. */
const JUDGED_AS = clientProtocol(undefined).name;
const JUDGE_PATH = "/v1/chat/completions";

export type Replays = ReturnType<typeof createReplays>;

export function createReplays({ rows, vault, find, read, ask, wallTime, log }: ReplaysParts) {
  const running = new Map<string, AbortController>();
  rows.interrupt();

  /** Waits and asks again where limits are in the way. */
  async function askPatiently(request: ReplayedRequest, signal: AbortSignal): Promise<AnsweredAgain> {
    for (let attempt = 1; ; attempt++) {
      const answer = await ask(request, signal);
      const waitMs = answer.retryAfterMs ?? USUAL_WAIT_MS;
      if (answer.status !== 429 || attempt === ATTEMPTS || waitMs > LONGEST_WAIT_MS) return answer;
      await Bun.sleep(waitMs);
      signal.throwIfAborted();
    }
  }

  async function replayOne(spec: ReplaySpec, id: string, position: number, signal: AbortSignal): Promise<ReplayResult> {
    const recording = find(id);
    const bodies = recording && (await read(recording));
    if (recording === undefined || bodies === undefined) throw new Error("the recording is gone");
    const { operation } = recording;
    const recorded = recordedAnswer(recording, bodies.answer);
    const body = replayBody(operation, bodies.request, spec);
    if (typeof body === "string") return { recorded, replayed: null, reason: body, identical: null, judged: null };
    const model = spec.ask ?? undefined;
    const told = await askPatiently({ operation, path: bodies.path, model, body, creator: spec.creator }, signal);
    const read_ = readAnswer(operation, { content: told.body, contentType: told.contentType }, told.status);
    const replayed = {
      ...(read_ && answerFacts(read_)),
      ...told.facts,
      status: told.status,
      requestId: told.requestId,
    };
    const answered: ReplayAnswer = { ...NOTHING_READ, ...replayed };
    const asked = readAsked(operation, bodies.request);
    const isExact = asked?.sampling.temperature === 0;
    return {
      recorded,
      replayed: answered,
      reason: null,
      identical: isExact ? isSame(recorded, answered) : null,
      judged: spec.judge === null ? null : await judge(spec, bodies.request, recorded, answered, position, signal),
    };
  }

  async function judge(
    { judge, creator }: ReplaySpec,
    request: RecordedBody,
    recorded: ReplayAnswer,
    replayed: ReplayAnswer,
    position: number,
    signal: AbortSignal,
  ): Promise<ReplayResult["judged"]> {
    if (judge === null) return null;
    // Models prefer the first answer that they read: each side stands first in every other request.
    const isSwapped = position % 2 === 1;
    const { model, rubric } = judge;
    const answers = isSwapped ? [replayed, recorded] : [recorded, replayed];
    const body = judgeBody({ model, rubric, question: new TextDecoder().decode(request.content), answers });
    const told = await askPatiently({ operation: JUDGED_AS, path: JUDGE_PATH, model, body, creator }, signal);
    const said = readAnswer(JUDGED_AS, { content: told.body, contentType: told.contentType }, told.status);
    return readJudgement(said, isSwapped);
  }

  async function run({ id, spec }: Pick<StoredReplay, "id" | "spec">, recordings: readonly string[]): Promise<void> {
    const leaving = new AbortController();
    running.set(id, leaving);
    let next = 0;
    async function work(): Promise<void> {
      for (let position = next++; position < recordings.length; position = next++) {
        if (leaving.signal.aborted) return;
        const recording = recordings[position] as string;
        const result = await replayOne(spec, recording, position, leaving.signal).catch(() => undefined);
        if (leaving.signal.aborted) return;
        if (result !== undefined) settle(id, position, recording, result);
      }
    }
    try {
      await Promise.all(Array.from({ length: AT_ONCE }, work));
      if (!leaving.signal.aborted) rows.end(id, "completed");
    } catch {
      log.warn({ replay: id }, "a replay cannot be kept, and was interrupted");
      rows.end(id, "interrupted");
    } finally {
      running.delete(id);
    }
  }

  function settle(id: string, position: number, recording: string, result: ReplayResult): void {
    const content = Buffer.from(JSON.stringify(result));
    rows.settle(id, { position, recording, sealed: vault.seal(ownerOf(recording), `${id}/${position}`, content) });
  }

  const ownerOf = (recording: string) => find(recording)?.owner ?? "";

  function toItem(id: string, { position, recording, sealed }: ReplayItemRow): ReplayItem {
    const content = sealed && vault.open(ownerOf(recording), `${id}/${position}`, sealed);
    const result = content ? (JSON.parse(new TextDecoder().decode(content)) as ReplayResult) : null;
    return { position, recording, result };
  }

  return {
    /** Returns at once; the requests are asked behind it. */
    start(spec: ReplaySpec, recordings: readonly string[]): StoredReplay {
      const replay = { id: `replay_${randomLetters(24)}`, atMs: wallTime(), spec };
      rows.add(replay, recordings);
      void run(replay, recordings).catch(() => {});
      return { ...replay, status: "running", total: recordings.length };
    },
    list: rows.list,
    find: rows.find,
    items: (id: string) => rows.items(id).map((row) => toItem(id, row)),
    /** False where there is none. */
    remove(id: string): boolean {
      running.get(id)?.abort();
      return rows.remove(id);
    },
    stop(): void {
      for (const [id, leaving] of running) {
        leaving.abort();
        rows.end(id, "interrupted");
      }
    },
  };
}

const NOTHING_READ = {
  text: "",
  toolCalls: [] as readonly ToolCallText[],
  finish: null as string | null,
  error: null as string | null,
};

function answerFacts({ parts, finish, error }: ReadAnswer): typeof NOTHING_READ {
  return {
    text: answerText(parts).slice(0, MOST_CHARACTERS),
    toolCalls: parts.flatMap(callOf),
    finish: finish ?? null,
    error: error ?? null,
  };
}

function callOf(part: ContentPart): ToolCallText[] {
  return part.type === "tool-call" ? [{ name: part.name, arguments: part.arguments }] : [];
}

function recordedAnswer(facts: RecordingFacts, answer: RecordedBody): ReplayAnswer {
  const read = readAnswer(facts.operation, answer, facts.status);
  const { status, backend, inputTokens, outputTokens, cost, firstByteMs, durationMs } = facts;
  return {
    ...NOTHING_READ,
    ...(read !== undefined && answerFacts(read)),
    ...{ status, backend, inputTokens, outputTokens, cost, firstByteMs, durationMs },
    requestId: facts.id,
  };
}

function isSame(one: ReplayAnswer, other: ReplayAnswer): boolean {
  const callsOf = ({ toolCalls }: ReplayAnswer) =>
    toolCalls.map(({ name, arguments: text }) => [name, parseObject(text) ?? text]);
  return one.text === other.text && Bun.deepEquals(callsOf(one), callsOf(other)) && other.status < 400;
}
