// Asks one address which engine answers there; every trouble means that nothing more is known.

import { kindOfServer, recognisedKind } from "../backends/detect.ts";
import type { BackendKind, EngineSign } from "../backends/kind.ts";
import { BACKEND_KINDS } from "../backends/kinds.ts";
import { orAborted } from "../lib/abortable-delay.ts";
import { isObject } from "../lib/json.ts";
import { readBounded } from "../lib/read-bounded.ts";
import { readModelList } from "../models/list.ts";

export type Probe = (url: string, init: RequestInit) => Promise<Response>;

interface EngineAnswer {
  /** Undefined if the engine is not recognised. */
  kind: BackendKind | undefined;
  /** Describes its answer, without words of its own. */
  said: string;
  wantsKey: boolean;
}

/** More than the model list of any engine; a stranger on the port may send without end. */
const MAX_ANSWER_BYTES = 4 * 2 ** 20;

const LIST_PATH = "/v1/models";

const SIGNS = Object.values(BACKEND_KINDS).flatMap((kind) => (kind.localSigns ?? []).map((sign) => ({ kind, sign })));

interface Seen {
  status?: number;
  server?: string | undefined;
  body?: unknown;
}

/**
 * Undefined where nothing answers HTTP. Returns by the time the signal aborts, even when the probe does not follow its
 * signal, with what is known by then.
 */
export async function askEngine(url: string, probe: Probe, signal: AbortSignal): Promise<EngineAnswer | undefined> {
  const list: Seen = {};
  const signs = SIGNS.map(({ kind, sign }) => ({ kind, sign, seen: {} as Seen }));
  const asked = [
    look(probe, url + LIST_PATH, signal, list),
    ...signs.map(({ sign, seen }) => look(probe, url + sign.path, signal, seen)),
  ];
  await orAborted(Promise.all(asked), signal);
  if (list.status === undefined) return undefined;
  // llama.cpp has paths of Ollama's: what an engine says of itself comes first.
  const shown = signs.find(({ sign, seen }) => shows(seen.body, sign));
  const owners = readModelList(list.body)?.map(({ ownedBy }) => ownedBy);
  const kind = kindOfServer(list.server) ?? recognisedKind(owners ?? []) ?? shown?.kind;
  return { kind, said: inWords(list.status, owners?.length), wantsKey: list.status === 401 || list.status === 403 };
}

function inWords(status: number, models: number | undefined): string {
  if (status < 200 || status > 299) return `answers GET ${LIST_PATH} with HTTP ${status}`;
  if (models === undefined) return `answers GET ${LIST_PATH} with no model list`;
  return models === 0 ? "lists no models" : "lists models of an unknown engine";
}

function shows(body: unknown, { list, member }: EngineSign): boolean {
  const entries = isObject(body) ? body[list] : undefined;
  return Array.isArray(entries) && entries.some((entry) => isObject(entry) && typeof entry[member] === "string");
}

/** Writes down what it sees as soon as it sees it: an answer may begin and never end. */
async function look(probe: Probe, url: string, signal: AbortSignal, seen: Seen): Promise<void> {
  try {
    // A probe's connection is not worth keeping; a redirect is no sign of an engine.
    const response = await probe(url, { signal, redirect: "manual", keepalive: false });
    seen.server = response.headers.get("server") ?? undefined;
    seen.status = response.status;
    if (!response.ok) return void (await response.body?.cancel());
    const body = await readBounded(response.body, MAX_ANSWER_BYTES);
    if (body !== undefined) seen.body = JSON.parse(new TextDecoder().decode(body));
  } catch {
    // A refused connection, an answer that broke off, a page of HTML: there is nothing more to see.
  }
}
