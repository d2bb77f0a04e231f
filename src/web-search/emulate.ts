// A web search tool for models that have none: the model calls a function, the gateway searches, the model reads on, and
// the client sees one answer with the searches in it, as a vendor with a search of its own would send it.

import type { ContentPart, Message, SearchHit, SearchResultPart, ToolCallPart } from "../generation/content.ts";
import type { GenerationEvent, PartStart } from "../generation/events.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { Usage } from "../generation/usage.ts";
import { parseObject } from "../lib/json.ts";
import { planSearch, roundRequest, type SearchPlan, toolResult, withReplayedSearches } from "./conversation.ts";
import type { SearchProvider } from "./provider.ts";
import { Round } from "./round.ts";
import type { SearchErrorCode, SearchWish, UserLocation } from "./service.ts";

export interface SearchLimits {
  /** Most results of one search. */
  maxResults: number;
  /** Turns in which the model may search. One more follows if it has not answered by then. */
  maxRounds: number;
}

export interface EmulationParts {
  /** A request with a web search tool. */
  request: GenerationRequest;
  /** One turn of the model. Trouble is a failure event; what it throws ends the whole answer. */
  callModel(request: GenerationRequest): AsyncIterable<GenerationEvent>;
  provider: SearchProvider;
  limits: SearchLimits;
  /** 32 random hex digits. */
  nonce: string;
  /** Aborts when the client leaves. */
  signal: AbortSignal;
  /** True if places of the text that name a result are marked with a citation. */
  cites: boolean;
  /** Called after each search that returned only an error. */
  searchFailed?(errorCode: SearchErrorCode, reason: string): void;
}

/** More calls of the search in one turn are a model that runs in circles. */
const MAX_SEARCHES_PER_ROUND = 5;

/** Longest turn that is kept for the next one. In UTF-16 code units. */
const MAX_TURN_LENGTH = 16 * 1024 * 1024;

/** OpenAI takes ids of up to 40 letters when the conversation comes back. */
const ID_DIGITS = 24;

/** The events of one answer (events.ts); only the client's leaving ends them without finish and failure. */
export async function* emulateSearch(options: EmulationParts): AsyncGenerator<GenerationEvent, void> {
  const { request, callModel, limits, nonce, signal, cites } = options;
  const plan = planSearch(request) as SearchPlan;
  const messages = withReplayedSearches(request.messages, plan.functionName);
  const search = createSearch(options, plan);
  const found: SearchHit[] = [];
  let usage: Usage | undefined;
  let parts = 0;
  let calls = 0;
  /** Searches that brought results, or found nothing. */
  let made = 0;

  const nextIndex = () => parts++;

  for (let number = 0; ; number++) {
    const isFirst = number === 0;
    const maySearch = number < limits.maxRounds && request.toolChoice?.type !== "none";
    const round = new Round({ functionName: plan.functionName, nextIndex, isFirst, cited: cites ? found : [] });
    for await (const event of callModel(roundRequest(request, plan, messages, { maySearch, isFirst }))) {
      yield* round.push(event);
      if (round.said.failure !== undefined || round.said.size > MAX_TURN_LENGTH) break;
    }
    if (signal.aborted) return;
    usage = sum(usage, round.usage);
    const { finish, searches, hasClientCalls } = round;
    const { failure, parts: said } = round.said;
    if (failure !== undefined || finish === undefined) {
      yield { type: "failure", failure: failure ?? BROKEN };
      return;
    }
    // Calls of a turn that was cut off are not what the model wanted to ask.
    const isCut = finish.reason === "length" || finish.reason === "content-filter";
    const results: SearchResultPart[] = [];
    const asked = new Map<ContentPart, ToolCallPart>();
    for (const call of isCut ? [] : searches) {
      const input = readInput(call.arguments);
      const id = `srvtoolu_${nonce.slice(0, ID_DIGITS)}${calls++}`;
      const { name } = plan.tool;
      yield* wholePart(nextIndex(), { type: "tool-call", id, name, serverSide: true }, input.text);
      const refusal = !maySearch || results.length >= MAX_SEARCHES_PER_ROUND;
      const result = await search(id, input.query, refusal);
      if (signal.aborted) return;
      if (result.errorCode === undefined) made++;
      yield* wholePart(nextIndex(), result);
      found.push(...result.results);
      results.push({ ...result, callId: call.id });
      asked.set(call, { ...call, arguments: input.text });
    }
    yield* round.release();
    const isOver = results.length === 0 || hasClientCalls || !maySearch;
    if (isOver) {
      const total = withSearches(usage, made);
      if (total !== undefined) yield { type: "usage", usage: total };
      if (results.length === 0) yield { type: "finish", finish };
      else yield { type: "finish", finish: { reason: hasClientCalls ? "tool-calls" : "stop" } };
      return;
    }
    messages.push(...turnOf(said, asked, results));
  }
}

const BROKEN = { message: "The backend ended the stream before its answer was complete.", status: 502 };

/** `query` undefined: the model has not named one. Never rejects. */
type Search = (callId: string, query: string | undefined, isRefused: boolean) => Promise<SearchResultPart>;

function createSearch({ provider, limits, signal, searchFailed }: EmulationParts, { tool }: SearchPlan): Search {
  const wish: SearchWish = { count: limits.maxResults };
  if (tool.allowedDomains !== undefined) wish.allowedDomains = tool.allowedDomains;
  if (tool.blockedDomains !== undefined) wish.blockedDomains = tool.blockedDomains;
  if (tool.userLocation !== undefined) wish.location = readLocation(tool.userLocation);
  let uses = 0;

  return async (callId, query, isRefused) => {
    const failed = (errorCode: SearchErrorCode): SearchResultPart => ({
      type: "search-result",
      callId,
      results: [],
      errorCode,
    });
    if (isRefused) return failed("max_uses_exceeded");
    if (query === undefined) return failed("invalid_tool_input");
    if (tool.maxUses !== undefined && uses >= tool.maxUses) return failed("max_uses_exceeded");
    uses++;
    const outcome = await provider.search(query, { ...wish, signal });
    if (outcome.ok) return { type: "search-result", callId, results: outcome.hits };
    searchFailed?.(outcome.errorCode, outcome.reason);
    return failed(outcome.errorCode);
  };
}

function readLocation(value: Record<string, unknown>): UserLocation {
  const location: UserLocation = {};
  for (const field of ["city", "region", "country", "timezone"] as const) {
    const text = value[field];
    if (typeof text === "string") location[field] = text;
  }
  return location;
}

/** The model's query, and its arguments in a form that every reader takes. */
function readInput(text: string): { query: string | undefined; text: string } {
  const input = parseObject(text) ?? {}; // for input that is no JSON the result says what is wanted
  const { query } = input;
  if (typeof query === "string" && query.trim() !== "") return { query, text: JSON.stringify({ query }) };
  return { query: undefined, text: JSON.stringify(input) };
}

function wholePart(index: number, part: PartStart, text?: string): GenerationEvent[] {
  const delta: GenerationEvent[] = text === undefined ? [] : [{ type: "delta", index, text }];
  return [{ type: "part-start", index, part }, ...delta, { type: "part-end", index }];
}

/** The turn of the model and what it is answered. */
function turnOf(
  parts: readonly ContentPart[],
  asked: ReadonlyMap<ContentPart, ToolCallPart>,
  results: readonly SearchResultPart[],
): Message[] {
  const said = parts.filter((part) => part.type !== "text" || part.text !== "").map((part) => asked.get(part) ?? part);
  return [
    { role: "assistant", parts: said },
    { role: "user", parts: results.map(toolResult) },
  ];
}

function sum(one: Usage | undefined, other: Usage | undefined): Usage | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return {
    input: added(one.input, other.input),
    output: added(one.output, other.output),
    ...((one.webSearches ?? other.webSearches) !== undefined && {
      webSearches: (one.webSearches ?? 0) + (other.webSearches ?? 0),
    }),
  };
}

/** Counts that only one side has stand for themselves. */
function added<Counts extends { total: number }>(one: Counts, other: Counts): Counts {
  const result: Record<string, number> = { ...one } as Record<string, number>;
  for (const [name, count] of Object.entries(other) as [string, number][]) result[name] = (result[name] ?? 0) + count;
  return result as unknown as Counts;
}

function withSearches(usage: Usage | undefined, webSearches: number): Usage | undefined {
  return webSearches === 0 ? usage : sum(usage, { input: { total: 0 }, output: { total: 0 }, webSearches });
}
