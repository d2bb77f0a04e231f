// /admin/replays: recorded requests asked again of another model, and both answers side by side.

import { referenceTo } from "../access/caller-reference.ts";
import { currencyOf } from "../config/sections/currency.ts";
import type { Settings } from "../config/sections/registry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { armName, everyTarget } from "../model-routes/routes.ts";
import { schemasOf } from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, pathParameter } from "../openapi/operation.ts";
import type { Recordings } from "../recording/recordings.ts";
import type { ReplayAnswer, ReplayItem, ReplaySpec, StoredReplay } from "../recording/replay.ts";
import { adminGroup, answer } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { readPromptFile } from "./prompt-folder.ts";
import { FILTER_NAMES, readFilter } from "./recording-query.ts";
import { inStore, openedRecordings } from "./recording-storage.ts";
import { invalidFields } from "./refusals.ts";
import { ReplayItemView, ReplayList, ReplayReport, ReplayRequest, ReplayRow } from "./replay-schemas.ts";
import type { Fields } from "./request.ts";

const NANOS = 1e9;
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
      parameters: [replayId],
      answers: [jsonAnswer(ReplayReport, "The replay.")],
      errors: [503],
      async handle(call) {
        const { store, replay } = await requireReplay(recordings, call.parameters.id);
        const items = inStore(() => store.replays.items(replay.id));
        return answer(call, replayView(replay, items, currencyOf(settings())));
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
  if (model === undefined && route === undefined && prompt === undefined) {
    throw wrong("model", "is missing; or name route or prompt");
  }
  if (model !== undefined && route !== undefined) throw wrong("route", "cannot stand beside model");
  if (arm !== undefined && route === undefined) throw wrong("arm", "needs a route");
  const target = arm === undefined ? undefined : targetOf(settings, route ?? "", arm);
  if (route !== undefined && !settings.routes.some(({ name }) => name === route))
    throw wrong("route", "is not configured");
  const instructions = prompt === undefined ? null : await promptText(parts, settings, prompt);
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

function replayRow({ id, atMs, status, total, spec }: StoredReplay): ReplayRow {
  const { model, route, arm, prompt, key, judge } = spec;
  const at = new Date(atMs).toISOString();
  return { ...{ id, at, status, model, route, arm, prompt, key, total }, judge: judge?.model ?? null };
}

function replayView(replay: StoredReplay, items: readonly ReplayItem[], currency: string): ReplayReport {
  const results = items.flatMap(({ result }) => (result === null ? [] : [result]));
  const countOf = (test: (result: (typeof results)[number]) => boolean) => results.filter(test).length;
  return {
    ...replayRow(replay),
    currency,
    done: results.length,
    identical: countOf(({ identical }) => identical === true),
    different: countOf(({ identical }) => identical === false),
    better: countOf(({ judged }) => judged?.better === "replayed"),
    worse: countOf(({ judged }) => judged?.better === "recorded"),
    same: countOf(({ judged }) => judged?.better === "same"),
    recorded: sumsOf(results.map(({ recorded }) => recorded)),
    replayed: sumsOf(results.map(({ replayed }) => replayed)),
    items: items.map(({ recording, result }) => ({
      recording,
      recorded: result && answerView(result.recorded),
      replayed: result?.replayed ? answerView(result.replayed) : null,
      reason: result?.reason ?? null,
      identical: result?.identical ?? null,
      judged: result?.judged ?? null,
    })),
  };
}

function sumsOf(answers: readonly (ReplayAnswer | null)[]): ReplayReport["recorded"] {
  const asked = answers.filter((each) => each !== null);
  const sum = (of: (each: ReplayAnswer) => number | null) => asked.reduce((total, each) => total + (of(each) ?? 0), 0);
  const first = asked.filter(({ firstByteMs }) => firstByteMs !== null);
  return {
    input_tokens: sum(({ inputTokens }) => inputTokens),
    output_tokens: sum(({ outputTokens }) => outputTokens),
    cost: sum(({ cost }) => cost) / NANOS,
    first_byte_ms:
      first.length === 0 ? null : first.reduce((total, each) => total + (each.firstByteMs ?? 0), 0) / first.length,
    failed: answers.filter((each) => each === null || each.status >= 400).length,
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
