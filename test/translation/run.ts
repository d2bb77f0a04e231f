// Runs the matrix: every client format, every backend format, every feature, whole and streamed, over sockets through the
// running gateway. What the gateway says it could not carry is read from its log.

import type { Gateway } from "../support/gateway.ts";
import { splitSse } from "../support/sse-reader.ts";
import { startGateway } from "../support/start-gateway.ts";
import type { ScriptEntry } from "../support/strict/script.ts";
import { emptyReading, type JsonObject, type Reading, type WireClient, type WireEvent } from "./ask.ts";
import { BACKEND_NAMES, type BackendName, type MatrixBackend, startBackends } from "./backends.ts";
import { chatClient } from "./clients/chat.ts";
import { completionsClient } from "./clients/completions.ts";
import { generateContentClient } from "./clients/generate-content.ts";
import { messagesClient } from "./clients/messages.ts";
import { ollamaClient } from "./clients/ollama.ts";
import { responsesClient } from "./clients/responses.ts";
import { FEATURES } from "./features/all.ts";
import type { CellRun, Dropped, Exchange, Feature, Verdict } from "./features/feature.ts";
import { judge } from "./features/judge.ts";

export const CLIENTS: readonly WireClient[] = [
  chatClient,
  responsesClient,
  messagesClient,
  generateContentClient,
  completionsClient,
  ollamaClient,
];

export interface Cell {
  client: WireClient;
  backend: BackendName;
  feature: Feature;
  verdict: Verdict;
}

/** One conversation that begins at one backend and goes on at another. */
export interface Move {
  client: WireClient;
  from: BackendName;
  to: BackendName;
  streamed: boolean;
  problem: string | undefined;
}

export interface Matrix {
  cells: Cell[];
  moves: Move[];
}

const STREAMED = [false, true];

export async function runMatrix(only: { client?: string; backend?: string; feature?: string } = {}): Promise<Matrix> {
  const backends = await startBackends();
  const gateway = await startGateway({
    config: {
      logging: { level: "debug", access_log: false },
      retry: { max_attempts: 1 },
      health_checks: { enabled: false },
      deduplication: { mode: "off" },
      backends: backends.map(({ config }) => config),
    },
  });
  try {
    const lanes = backends
      .filter(({ id }) => only.backend === undefined || only.backend === id)
      .map((backend) => runLane(gateway, backend, only));
    const runs = (await Promise.all(lanes)).flat();
    const moves = only.feature === undefined ? await runMoves(gateway, backends) : [];
    await gateway.stop();
    const dropped = droppedByRequest(gateway);
    const cells = runs.map(({ feature, run }): Cell => {
      for (const exchange of [run.plain, run.streamed]) {
        exchange.dropped = exchange.requestIds.flatMap((id) => dropped.get(id) ?? []);
      }
      return { client: run.client, backend: run.backend.id, feature, verdict: judge(feature, run) };
    });
    return { cells, moves };
  } finally {
    await gateway.close();
    for (const { server } of backends) server.stop();
  }
}

function droppedByRequest(gateway: Gateway): Map<string, Dropped[]> {
  const found = new Map<string, Dropped[]>();
  for (const { msg, request_id, dropped } of gateway.printed.logEntries) {
    if (msg !== "a translation could not carry all") continue;
    found.set(request_id as string, [...(found.get(request_id as string) ?? []), ...(dropped as Dropped[])]);
  }
  return found;
}

async function runLane(
  gateway: Gateway,
  backend: MatrixBackend,
  only: { client?: string; feature?: string },
): Promise<{ feature: Feature; run: CellRun }[]> {
  const runs: { feature: Feature; run: CellRun }[] = [];
  for (const client of CLIENTS) {
    if (only.client !== undefined && only.client !== client.name) continue;
    for (const feature of FEATURES) {
      if (only.feature !== undefined && only.feature !== feature.id) continue;
      if (feature.without?.includes(client.name) || isOwnEndpoint(client, backend)) continue;
      const [plain, streamed] = [
        await converse(gateway, client, backend, feature, false),
        await converse(gateway, client, backend, feature, true),
      ];
      runs.push({ feature, run: { client, backend, plain, streamed } });
    }
  }
  return runs;
}

/** Backends of the chat format have the legacy endpoint as well: such requests pass untouched. */
export function isOwnEndpoint(client: WireClient, { id }: Pick<MatrixBackend, "id">): boolean {
  return client.name === "completions" && (id === "chat" || id === "local");
}

let requests = 0;

async function converse(
  gateway: Gateway,
  client: WireClient,
  backend: MatrixBackend,
  feature: Feature,
  streamed: boolean,
): Promise<Exchange> {
  const { server, script } = backend;
  script.splice(0, script.length, ...scriptOf(feature, backend));
  const before = server.requests.length;
  const model = modelOf(feature, backend);
  let body = client.write(feature.ask(client, backend), model, streamed);
  const exchange: Exchange = { readings: [], received: [], refusals: [], dropped: [], requestIds: [] };
  for (let turn = 0; ; turn++) {
    const id = `matrix-${++requests}`;
    exchange.requestIds.push(id);
    const reading = await send(gateway, client, body, id, streamed);
    exchange.readings.push(reading);
    const next = reading.status === 200 ? feature.follow?.(reading, turn, { client, backend, body }) : undefined;
    if (next === undefined) break;
    body = next;
  }
  for (const request of server.requests.slice(before)) {
    if (request.refused === undefined) exchange.received.push(backend.read(request.body));
    else exchange.refusals.push(`${request.refused.field}: ${request.refused.message}`);
  }
  return exchange;
}

function scriptOf(feature: Feature, backend: MatrixBackend): readonly ScriptEntry[] {
  return typeof feature.script === "function" ? feature.script(backend) : feature.script;
}

function modelOf(feature: Feature, backend: MatrixBackend): string {
  if (feature.model === "thinking") return backend.thinkingModel;
  return feature.model === "effort" ? backend.effortModel : backend.plainModel;
}

export async function send(
  gateway: Gateway,
  client: WireClient,
  body: JsonObject,
  id: string,
  streamed: boolean,
): Promise<Reading> {
  const { path, sent } = addressed(client, body, streamed);
  const response = await gateway.post(path, sent, { headers: { ...client.headers, "x-request-id": id } });
  const whole = await response.text();
  const type = response.headers.get("content-type") ?? "";
  const retryAfter = response.headers.get("retry-after");
  if (response.status !== 200) {
    const reading: Reading = { ...emptyReading(), status: response.status, end: "error" };
    if (retryAfter !== null) reading.retryAfter = retryAfter;
    if (!type.startsWith("application/json")) reading.offences.push(`an error as ${type}`);
    reading.error = client.readError(JSON.parse(whole) as JsonObject);
    return reading;
  }
  if (!streamed) return client.readWhole(JSON.parse(whole) as JsonObject);
  const { events, rest } = client.streamType === undefined ? splitEvents(whole) : splitLines(whole);
  const reading = client.readStream(events);
  if (!type.startsWith(client.streamType ?? "text/event-stream")) reading.offences.push(`a stream as ${type}`);
  if (rest !== "") reading.offences.push(`half an event: ${rest.slice(0, 40)}`);
  return reading;
}

interface SplitAnswer {
  events: WireEvent[];
  /** What stands behind the last event that is whole. */
  rest: string;
}

function splitEvents(whole: string): SplitAnswer {
  const { events, rest } = splitSse(whole);
  return { events: events.flatMap(({ event, data }) => (data === undefined ? [] : [{ name: event, data }])), rest };
}

function splitLines(whole: string): SplitAnswer {
  const lines = whole.split("\n");
  const rest = lines.pop() ?? "";
  return { events: lines.map((data) => ({ name: undefined, data })), rest };
}

/** Where a body is sent, and what of it. */
export function addressed(
  { path }: WireClient,
  body: JsonObject,
  streamed: boolean,
): { path: string; sent: JsonObject } {
  if (typeof path === "string") return { path, sent: body };
  const { model, ...sent } = body;
  return { path: path(String(model), streamed), sent };
}

/** A thoughtful tool turn at one backend, then its result to another: foreign proofs must not reach it. */
async function runMoves(gateway: Gateway, backends: readonly MatrixBackend[]): Promise<Move[]> {
  const feature = FEATURES.find(({ id }) => id === "thinking-replay");
  if (feature === undefined) throw new Error("no feature thinking-replay");
  const byName = new Map(backends.map((backend) => [backend.id, backend]));
  const moves: Move[] = [];
  for (const client of CLIENTS) {
    if (feature.without?.includes(client.name)) continue;
    for (const from of BACKEND_NAMES) {
      for (const to of BACKEND_NAMES) {
        if (from === to) continue;
        for (const streamed of STREAMED) {
          const [first, second] = [byName.get(from) as MatrixBackend, byName.get(to) as MatrixBackend];
          const problem = await move(gateway, client, feature, first, second, streamed);
          moves.push({ client, from, to, streamed, problem });
        }
      }
    }
  }
  return moves;
}

async function move(
  gateway: Gateway,
  client: WireClient,
  feature: Feature,
  from: MatrixBackend,
  to: MatrixBackend,
  streamed: boolean,
): Promise<string | undefined> {
  const [first, second] = scriptOf(feature, from);
  from.script.splice(0, from.script.length, first as ScriptEntry);
  to.script.splice(0, to.script.length, second as ScriptEntry);
  const body = client.write(feature.ask(client, from), from.thinkingModel, streamed);
  const reading = await send(gateway, client, body, `matrix-${++requests}`, streamed);
  const next = feature.follow?.(reading, 0, { client, backend: from, body });
  if (next === undefined) return `the first turn failed: ${JSON.stringify(reading.error)}`;
  const seen = to.server.requests.length;
  // The wishes of the new request are those of a client that knows its new model; the history is the old one.
  const moved = { ...client.write(feature.ask(client, to), to.thinkingModel, streamed), ...historyOf(next) };
  const answer = await send(gateway, client, moved, `matrix-${++requests}`, streamed);
  const refusals = to.server.requests.slice(seen).flatMap(({ refused }) => (refused ? [refused] : []));
  if (refusals.length > 0) return refusals.map(({ field, message }) => `${field}: ${message}`).join("; ");
  if (answer.status !== 200) return `status ${answer.status}: ${answer.error?.message}`;
  if (answer.offences.length > 0) return answer.offences.join("; ");
  const { body: seenBody, text } = to.server.last;
  if (/reasoning_details|extra_content|"signature"/.test(text) && to.name !== "messages") return "a proof arrived";
  const received = to.read(seenBody);
  const results = received.turns.flatMap(({ parts }) => parts.filter(({ type }) => type === "result"));
  return results.length === 1 ? undefined : `${results.length} tool results arrived`;
}

function historyOf({ messages, input, contents }: JsonObject): JsonObject {
  if (contents !== undefined) return { contents };
  return messages === undefined ? { input } : { messages };
}
