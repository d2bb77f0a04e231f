// /admin/replays: recorded requests asked again of another model, and both answers side by side.

import { referenceTo } from "../access/caller-reference.ts";
import { currencyOf } from "../config/sections/currency.ts";
import type { Settings } from "../config/sections/registry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { armName, everyTarget } from "../model-routes/routes.ts";
import { schemasOf, text } from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, pathParameter, queryParameter } from "../openapi/operation.ts";
import type { Recordings } from "../recording/recordings.ts";
import type { AnswerSums, ReplayAnswer, ReplayItem, ReplaySpec, StoredReplay } from "../recording/replay.ts";
import type { ItemPage } from "../recording/replay-rows.ts";
import { adminGroup, answer } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { readPromptFile } from "./prompt-folder.ts";
import { badParameter, queryOf, readNumber } from "./query.ts";
import { FILTER_NAMES, readFilter } from "./recording-query.ts";
import { inStore, openedRecordings } from "./recording-storage.ts";
import { invalidFields } from "./refusals.ts";
import { ReplayItemView, ReplayList, ReplayReport, ReplayRequest, ReplayRow } from "./replay-schemas.ts";
import type { Fields } from "./request.ts";

const NANOS = 1e9;
const MOST_PER_PAGE = 100;
/** Sealed; a page with less has fewer requests. */
const PAGE_BYTES = 4 * 1024 ** 2;
const CURSOR_PATTERN = "^\\d{1,6}$";
const MOST_ITEMS = 1_000;
const USUAL_ITEMS = 100;

const endpoint = adminGroup(
  "Recordings",
  schemasOf(ReplayRequest, ReplayItemView, ReplayRow, ReplayList, ReplayReport),
);
const replayId = pathParameter("id", "Id of a replay.");

type ReplayRouteParts = Pick<AdminParts, "recordings" | "settings" | "clock" | "keyStore" | "identify" | "promptFiles">;

export function replayRoutes(parts: ReplayRouteParts): DescribedEndpoint[] {
  const { recordings, settings } = parts;
  return [
    endpoint("POST /admin/replays", {
      id: "startReplay",
      role: "operator",
      summary: "Ask recorded requests again of another model, target of a route, or with another prompt",
      description: "They are asked in the class of batches. Answered at once; GET tells how far it is.",
      body: { schema: ReplayRequest, example: { recordings: { model: "gpt-4o", window: "24h" }, model: "own-large" } },
      answers: [jsonAnswer(ReplayRow, "The replay.", 201)],
      errors: [404, 503],
      async handle(call, read) {
        const asked = await read();
        const store = await openedRecordings(recordings);
        if (store === undefined) throw nothingRecorded();
        const spec = await readSpec(parts, asked);
        const ids = await inStore(() => meantBy(store, asked.recordings, parts.clock.wallTime()));
        const replay = inStore(() => store.replays.start(spec, ids));
        const change = { section: "replays", field: "recordings", from: 0, to: ids.length };
        call.deed = { subject: replay.id, changes: [change] };
        return answer(call, replayRow(replay), { status: 201 });
      },
    }),
    endpoint("GET /admin/replays", {
      id: "listReplays",
      role: "operator",
      summary: "The latest replays",
      answers: [jsonAnswer(ReplayList, "The replays.")],
      errors: [503],
      async handle(call) {
        const store = await openedRecordings(recordings);
        return answer(call, { replays: store === undefined ? [] : inStore(store.replays.list).map(replayRow) });
      },
    }),
    endpoint("GET /admin/replays/{id}", {
      id: "readReplay",
      role: "operator",
      summary: "A replay: recorded and replayed answers side by side",
      parameters: [
        replayId,
        queryParameter("limit", `Most requests of a page, up to ${MOST_PER_PAGE}.`, {
          ...{ type: "integer", minimum: 1, default: MOST_PER_PAGE },
        }),
        queryParameter("cursor", "next_cursor of the page before.", { ...text, pattern: CURSOR_PATTERN }),
      ],
      answers: [jsonAnswer(ReplayReport, "The replay.")],
      errors: [503],
      async handle(call) {
        const page = readPage(queryOf(call));
        const { store, replay } = await requireReplay(recordings, call.parameters.id);
        const { items, isLast } = inStore(() => store.replays.items(replay.id, page));
        return answer(call, replayView(replay, items, isLast, currencyOf(settings())));
      },
    }),
    endpoint("DELETE /admin/replays/{id}", {
      id: "deleteReplay",
      role: "operator",
      summary: "End a replay, and delete it",
      parameters: [replayId],
      answers: [jsonAnswer(ReplayRow, "The replay as it was.")],
      errors: [503],
      async handle(call) {
        const { store, replay } = await requireReplay(recordings, call.parameters.id);
        inStore(() => store.replays.remove(replay.id));
        call.deed = { subject: replay.id };
        return answer(call, replayRow(replay));
      },
    }),
  ];
}

async function requireReplay(recordings: AdminParts["recordings"], id: string) {
  const store = await openedRecordings(recordings);
  const replay = store && inStore(() => store.replays.find(id));
  if (store === undefined || replay === undefined) {
    throw new GatewayError(ERRORS.recordingNotFound, "id: there is no such replay.", { param: "id" });
  }
  return { store, replay };
}

function readPage(query: URLSearchParams): ItemPage {
  const limit = Math.min(readNumber(query, "limit", 1) ?? MOST_PER_PAGE, MOST_PER_PAGE);
  const cursor = query.get("cursor");
  if (cursor !== null && !new RegExp(CURSOR_PATTERN).test(cursor)) {
    throw badParameter("cursor", "next_cursor of the page before");
  }
  return { behind: cursor === null ? -1 : Number(cursor), limit, maxBytes: PAGE_BYTES };
}

function nothingRecorded(): GatewayError {
  return new GatewayError(ERRORS.recordingNotFound, "Nothing was recorded (recording.enabled).", {
    param: "recordings",
  });
}

async function meantBy(store: Recordings, asked: ReplayRequest["recordings"], nowMs: number): Promise<string[]> {
  const ids = typeof asked === "string" ? [asked] : Array.isArray(asked) ? (asked as string[]) : undefined;
  if (ids !== undefined) {
    if (ids.length === 0 || ids.length > MOST_ITEMS) throw wrong("recordings", `expected 1 to ${MOST_ITEMS} ids`);
    const missing = ids.find((id) => store.find(id) === undefined);
    if (missing !== undefined) throw wrong("recordings", "names a recording that does not exist");
    return [...new Set(ids)];
  }
  const query = new URLSearchParams(asked as Record<string, string>);
  for (const name of query.keys()) {
    if (name !== "limit" && !FILTER_NAMES.includes(name))
      throw wrong(`recordings.${name}`, "is no filter of recordings");
  }
  const limit = query.get("limit") ?? String(USUAL_ITEMS);
  if (!/^\d{1,4}$/.test(limit) || Number(limit) < 1 || Number(limit) > MOST_ITEMS) {
    throw wrong("recordings.limit", `expected a whole number from 1 to ${MOST_ITEMS}`);
  }
  const found = await store.list(readFilter(query, nowMs), { limit: Number(limit) });
  if (found.length === 0) throw wrong("recordings", "no recording is meant by this filter");
  return found.map(({ id }) => id);
}

/** Throws 400 for what cannot be asked. */
async function readSpec(parts: ReplayRouteParts, asked: Fields<ReplayRequest>): Promise<ReplaySpec> {
  const { model, route, arm, prompt, key, judge } = asked;
  const settings = parts.settings();
  if ([model, route, prompt, asked.instructions].every((way) => way === undefined)) {
    throw wrong("model", "is missing; or name route, prompt or instructions");
  }
  if (prompt !== undefined && asked.instructions !== undefined)
    throw wrong("instructions", "cannot stand beside prompt");
  if (model !== undefined && route !== undefined) throw wrong("route", "cannot stand beside model");
  if (arm !== undefined && route === undefined) throw wrong("arm", "needs a route");
  const target = arm === undefined ? undefined : targetOf(settings, route ?? "", arm);
  if (route !== undefined && !settings.routes.some(({ name }) => name === route))
    throw wrong("route", "is not configured");
  const instructions = prompt === undefined ? (asked.instructions ?? null) : await promptText(parts, settings, prompt);
  const onTarget = target && (target.backend === undefined ? target.model : `${target.backend}/${target.model}`);
  return {
    ...{ model: model ?? null, route: route ?? null, arm: arm ?? null, prompt: prompt ?? null, key: key ?? null },
    judge: judge ?? null,
    ask: onTarget ?? route ?? model ?? null,
    set: target?.set ?? null,
    instructions,
    creator: creatorOf(parts, settings, key),
  };
}

function targetOf({ routes }: Settings, name: string, arm: string) {
  const route = routes.find((each) => each.name === name);
  const target = route && everyTarget(route).find((each) => armName(each) === arm);
  if (target === undefined) throw wrong("arm", "is no target of this route");
  return target;
}

async function promptText(
  { promptFiles }: ReplayRouteParts,
  { global_prompts }: Settings,
  path: string,
): Promise<string> {
  const { content } = await readPromptFile({ ...promptFiles, settings: global_prompts }, path);
  return content;
}

function creatorOf(
  { keyStore, identify }: ReplayRouteParts,
  { api_keys: { mode, keys } }: Settings,
  id: string | undefined,
): ReplaySpec["creator"] {
  if (id === undefined) {
    if (mode === "blocking") throw wrong("key", "is missing; requests need a key (api_keys.mode)");
    return referenceTo(undefined);
  }
  const isKnown = keys.some((each) => identify(each) === id) || keyStore.find(id) !== undefined;
  if (!isKnown) throw wrong("key", "is no key");
  return { kind: "key", id };
}

function wrong(field: string, message: string): GatewayError {
  return invalidFields([{ field, message }]);
}

function replayRow({ id, atMs, status, total, spec, sums: { done } }: StoredReplay): ReplayRow {
  const { model, route, arm, prompt, key, judge } = spec;
  const at = new Date(atMs).toISOString();
  return { ...{ id, at, status, model, route, arm, prompt, key, total, done }, judge: judge?.model ?? null };
}

function replayView(
  replay: StoredReplay,
  items: readonly ReplayItem[],
  isLast: boolean,
  currency: string,
): ReplayReport {
  const { spec, sums } = replay;
  const { recorded, replayed, done: _, ...verdicts } = sums;
  const last = isLast ? undefined : items.at(-1);
  return {
    ...replayRow(replay),
    ...verdicts,
    instructions: spec.prompt === null ? spec.instructions : null,
    rubric: spec.judge?.rubric ?? null,
    currency,
    recorded: sumsView(recorded),
    replayed: sumsView(replayed),
    items: items.map(({ recording, isAskedAgain, result }) => ({
      recording,
      asked_again: isAskedAgain,
      recorded: result && answerView(result.recorded),
      replayed: result?.replayed ? answerView(result.replayed) : null,
      reason: result?.reason ?? null,
      identical: result?.identical ?? null,
      judged: result?.judged ?? null,
    })),
    next_cursor: last === undefined ? null : String(last.position),
  };
}

function sumsView({ inputTokens, outputTokens, cost, firstByteMs, firstBytes, failed }: AnswerSums) {
  return {
    ...{ input_tokens: inputTokens, output_tokens: outputTokens, cost: cost / NANOS, failed },
    first_byte_ms: firstBytes === 0 ? null : firstByteMs / firstBytes,
  };
}

function answerView(told: ReplayAnswer): NonNullable<ReplayItemView["replayed"]> {
  return {
    request_id: told.requestId,
    status: told.status,
    text: told.text,
    tool_calls: told.toolCalls,
    finish: told.finish,
    error: told.error,
    backend: told.backend,
    input_tokens: told.inputTokens,
    output_tokens: told.outputTokens,
    cost: told.cost / NANOS,
    first_byte_ms: told.firstByteMs,
    duration_ms: told.durationMs,
  };
}
