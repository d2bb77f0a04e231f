// The parts of an answer -> the items of its output. The stream encoder makes its finished items here too, so that a
// stream and a whole answer say the same.

import { isSearch } from "../../generation/answer-losses.ts";
import type {
  ContentPart,
  ImagePart,
  OpaquePart,
  ReasoningPart,
  SearchResultPart,
  TextPart,
  ToolCallPart,
} from "../../generation/content.ts";
import type { GenerationResult } from "../../generation/result.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import type { AnswerContext } from "../protocol.ts";
import { nonEmptyText } from "../reading.ts";
import { encodeCitation } from "./citations.ts";
import { encodeFinish } from "./finish.ts";
import { type NamespacedName, namespacesIn } from "./namespaces.ts";
import { sealToken } from "./reasoning-seal.ts";
import { itemId } from "./sequence.ts";

export type ItemStatus = "in_progress" | "completed" | "incomplete";

/** What the request says about the form of its answer, and the ids given so far. */
export interface OutputRules {
  context: AnswerContext;
  showsThoughts: boolean;
  sealsThoughts: boolean;
  showsSources: boolean;
  /** Names of the request's free-form tools; a backend without such tools calls them as functions. */
  customTools: ReadonlySet<string>;
  /** What the joined names of tools in namespaces stand for. */
  namespaces: ReadonlyMap<string, NamespacedName> | undefined;
  usedIds: Set<string>;
  /** Whether calls keep the ids of their backend: it speaks this format, and goes on for another that does. */
  keepsIds: boolean;
}

/** `keepsAll`: for the gateway's own memory instead of the client's eyes. */
export function outputRules(context: AnswerContext, keepsAll = false): OutputRules {
  const { reasoning, tools, origin } = context.request;
  const include = origin.protocol === "responses" ? origin.body.include : undefined;
  return {
    context,
    showsThoughts: keepsAll || reasoning.visible !== false,
    sealsThoughts: keepsAll || reasoning.sealed === true,
    showsSources: keepsAll || (Array.isArray(include) && include.includes("web_search_call.action.sources")),
    customTools: new Set(tools.filter((tool) => tool.kind === "custom").map((tool) => tool.name)),
    namespaces: origin.protocol === "responses" ? namespacesIn(origin.body) : undefined,
    usedIds: new Set(),
    keepsIds: false,
  };
}

export function encodeOutput(
  { parts, finish }: GenerationResult,
  context: AnswerContext,
  { keepsAll = false }: { keepsAll?: boolean } = {},
): JsonObject[] {
  const rules = outputRules(context, keepsAll);
  const results = parts.filter((part) => part.type === "search-result");
  const output: JsonObject[] = [];
  /** The contents of the message that further text joins. */
  let contents: JsonObject[] | undefined;
  for (const [index, part] of parts.entries()) {
    if (part.type === "text" || part.type === "refusal") {
      if (part.text === "") continue;
      const content = part.type === "text" ? textContent(part) : refusalContent(part.text);
      if (contents !== undefined) {
        contents.push(content);
        continue;
      }
      contents = [content];
      output.push(messageItem(itemId("msg", context, index), contents, "completed"));
      continue;
    }
    const item = encodeItem(part, index, rules, results);
    if (item === undefined) continue;
    contents = undefined;
    output.push(item);
  }
  const last = output.at(-1);
  if (last !== undefined && hasStatus(last) && encodeFinish(finish).status === "incomplete") last.status = "incomplete";
  return output;
}

/** Whether an answer that was cut off can be seen on this item. */
function hasStatus({ type }: JsonObject): boolean {
  return type === "message" || type === "function_call";
}

/** Undefined for a part that is not an item of its own, or that the client does not want to see. */
function encodeItem(
  part: ContentPart,
  index: number,
  rules: OutputRules,
  results: readonly SearchResultPart[],
): JsonObject | undefined {
  switch (part.type) {
    case "reasoning": {
      const token = thoughtsToken(part, rules);
      if (token === undefined && (part.text === "" || !rules.showsThoughts)) return undefined;
      return reasoningItem(reasoningId(part.itemId, index, rules), rules.showsThoughts ? part.text : "", token);
    }
    case "tool-call":
      if (part.serverSide === true) {
        if (!isSearch(part)) return undefined;
        const result = results.find(({ callId }) => callId === part.id);
        return searchItem(itemId("ws", rules.context, index), part.arguments, result, rules);
      }
      return callItem(part, index, rules);
    case "image":
      return imageItem(itemId("ig", rules.context, index), part);
    case "opaque":
      return opaqueItem(part, index, rules);
    default:
      return undefined;
  }
}

export function textContent({ text, citations = [] }: Pick<TextPart, "text" | "citations">): JsonObject {
  const annotations = citations.map((citation) => encodeCitation(citation, text.length));
  return {
    type: "output_text",
    text,
    annotations: annotations.filter((annotation) => annotation !== undefined),
    logprobs: [],
  };
}

export function refusalContent(refusal: string): JsonObject {
  return { type: "refusal", refusal };
}

export function messageItem(id: string | undefined, content: readonly JsonObject[], status: ItemStatus): JsonObject {
  return { id, type: "message", role: "assistant", status, content };
}

/** A Responses backend checks that its sealed thoughts come back under the id that it gave them. */
export function reasoningId(given: string | undefined, index: number, { context, usedIds }: OutputRules): string {
  const id = given === undefined || usedIds.has(given) ? itemId("rs", context, index) : given;
  usedIds.add(id);
  return id;
}

/** The id of a call's item. */
export function callItemId(prefix: "fc" | "ctc", given: string | undefined, part: number, rules: OutputRules): string {
  return rules.keepsIds && given !== undefined && !rules.usedIds.has(given)
    ? given
    : itemId(prefix, rules.context, part);
}

export function thoughtsToken(part: ReasoningPart, { sealsThoughts, showsThoughts }: OutputRules): string | undefined {
  return sealsThoughts ? sealToken(part, showsThoughts ? "" : part.text) : undefined;
}

export function reasoningItem(id: string, text: string, token: string | undefined): JsonObject {
  return compact({ id, type: "reasoning", summary: text === "" ? [] : [summaryPart(text)], encrypted_content: token });
}

export function summaryPart(text: string): JsonObject {
  return { type: "summary_text", text };
}

function callItem(part: ToolCallPart, index: number, rules: OutputRules): JsonObject {
  const call = calledAs(part, rules);
  if (isCustomCall(part, rules)) {
    const input = part.custom === true ? part.arguments : customInput(part.arguments);
    return customCallItem(itemId("ctc", rules.context, index), call, input);
  }
  return functionCallItem(itemId("fc", rules.context, index), call, part.arguments || "{}", "completed");
}

type CallName = Pick<ToolCallPart, "id" | "name" | "custom">;

/** A call under the names that the client gave the tool. */
export interface ClientCall {
  id: string;
  name: string;
  namespace?: string;
}

export function calledAs({ id, name }: CallName, { namespaces }: OutputRules): ClientCall {
  return { id, name, ...namespaces?.get(name) };
}

export function isCustomCall({ name, custom }: CallName, { customTools }: OutputRules): boolean {
  return custom === true || customTools.has(name);
}

/** The text in the arguments {"input": "..."} of a free-form tool that the model was shown as a function. */
export function customInput(args: string): string {
  try {
    const value: unknown = JSON.parse(args);
    return isObject(value) && typeof value.input === "string" ? value.input : args;
  } catch {
    return args;
  }
}

export function functionCallItem(id: string, call: ClientCall, args: string, status: ItemStatus): JsonObject {
  return { id, type: "function_call", status, call_id: call.id, ...namesOf(call), arguments: args };
}

export function customCallItem(id: string, call: ClientCall, input: string): JsonObject {
  return { id, type: "custom_tool_call", call_id: call.id, ...namesOf(call), input };
}

function namesOf({ name, namespace }: ClientCall): JsonObject {
  return namespace === undefined ? { name } : { name, namespace };
}

export function searchItem(
  id: string,
  args: string,
  result: SearchResultPart | undefined,
  { showsSources }: Pick<OutputRules, "showsSources">,
): JsonObject {
  const sources = showsSources ? result?.results.map(({ url }) => ({ type: "url", url })) : undefined;
  return {
    id,
    type: "web_search_call",
    status: result?.errorCode === undefined ? "completed" : "failed",
    action: { ...searchAction(args), ...(sources !== undefined && { sources }) },
  };
}

/** The arguments are those of the search, or of a visit to a page as the stream decoder of this format gives them. */
function searchAction(args: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(args);
  } catch {
    value = undefined; // a call that was cut off
  }
  if (isObject(value) && (value.type === "open_page" || value.type === "find_in_page")) return value;
  const query = isObject(value) && typeof value.query === "string" ? value.query : "";
  return { type: "search", query, queries: query === "" ? [] : [query] };
}

export function imageItem(id: string, { source }: ImagePart): JsonObject | undefined {
  if (source.kind !== "base64") return undefined;
  return { id, type: "image_generation_call", status: "completed", result: source.data };
}

export function opaqueItem({ protocol, value }: OpaquePart, index: number, rules: OutputRules): JsonObject | undefined {
  if (protocol !== "responses" || typeof value.type !== "string") return undefined;
  const given = nonEmptyText(value.id);
  const id = given === undefined || rules.usedIds.has(given) ? itemId("item", rules.context, index) : given;
  rules.usedIds.add(id);
  return { ...value, id };
}
