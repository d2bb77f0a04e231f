// Takes personal and secret texts out of a body before it is kept. In a stream they may be spread over several events: the texts
// that a client would put together are read together.

import { isObject, type JsonObject, parseJson } from "../lib/json.ts";
import { readEvents } from "../protocols/sse.ts";
import { placeholder, redacted, sensitiveIn } from "../redaction/sensitive.ts";
import { isEncoded } from "./words.ts";

/** Members that no person writes, and whose values would mean another thing together. */
const TECHNICAL: ReadonlySet<string> = new Set([
  ...["id", "object", "model", "type", "role", "finish_reason", "finishReason", "stop_reason", "done_reason"],
  ...["item_id", "call_id", "signature", "thoughtSignature", "encrypted_content", "responseId", "modelVersion"],
  ...["created_at", "system_fingerprint", "service_tier", "obfuscation", "mimeType", "media_type"],
]);
/** Members that tell texts of one event from those of another at the same place. */
const PLACES = ["type", "index", "item_id", "output_index", "content_index", "summary_index"];

const decoder = new TextDecoder();
const encoder = new TextEncoder();

interface RedactedBody {
  /** The body itself where there was nothing to take out. */
  content: Uint8Array;
  /** Of a body that is JSON: what it says now. */
  value?: unknown;
}

/** @returns undefined where the body cannot be read, so that nothing is known of what it says */
export function redactBody(body: Uint8Array, contentType: string): RedactedBody | undefined {
  if (body.length === 0) return { content: body };
  if (contentType.includes("event-stream")) return { content: redactEvents(body) };
  const text = decoder.decode(body);
  const value = parseJson(text);
  if (value !== undefined) return redactJson(value, body);
  return /ndjson|jsonl|json-seq/.test(contentType) ? { content: redactLines(text, body) } : undefined;
}

function redactJson(whole: unknown, body: Uint8Array): RedactedBody {
  const told = { value: whole };
  // Elements of a list at the top may be the events of a stream.
  const isChanged = Array.isArray(whole) ? redactTexts(whole).size > 0 : redactMembers(told);
  return { content: isChanged ? encoder.encode(JSON.stringify(told.value)) : body, value: told.value };
}

function redactLines(text: string, body: Uint8Array): Uint8Array {
  const whole = text.slice(0, text.lastIndexOf("\n") + 1);
  const lines = whole.split("\n").slice(0, -1);
  const parsed = lines.map(parseJson);
  const values = parsed.map((value, index) => value ?? lines[index]);
  const changed = redactTexts(values);
  if (changed.size === 0 && whole.length === text.length) return body;
  const kept = values.map((value, index) => {
    if (!changed.has(index)) return lines[index];
    return parsed[index] === undefined ? value : JSON.stringify(value);
  });
  return encoder.encode(kept.map((line) => `${line}\n`).join(""));
}

function redactEvents(body: Uint8Array): Uint8Array {
  const text = decoder.decode(body);
  const events = wholeEvents(text);
  const values = events.map((event) => readEvents(event)[0]?.data).map((data) => data && (parseJson(data) ?? data));
  const changed = redactTexts(values);
  const kept = events.map((event, index) => (changed.has(index) ? rewritten(event, values[index]) : event)).join("");
  return kept === text ? body : encoder.encode(kept);
}

/** What was cut off at the end is left out. */
function wholeEvents(text: string): string[] {
  const events: string[] = [];
  let start = 0;
  for (const { index, 0: boundary } of text.matchAll(/\n\r?\n|\r\r/g)) {
    const end = index + boundary.length;
    events.push(text.slice(start, end));
    start = end;
  }
  return events;
}

/** The event with other data. */
function rewritten(event: string, value: unknown): string {
  const others = event.split(/\r\n|\r|\n/).filter((line) => line !== "" && !/^data(:|$)/.test(line));
  const data = typeof value === "string" ? value : JSON.stringify(value);
  return [...others, ...data.split("\n").map((line) => `data: ${line}`), "", ""].join("\n");
}

interface Leaf {
  event: number;
  holder: Record<string, unknown>;
  member: string;
  text: string;
}

/** Changes the texts in place. True: there was something to take out. */
function redactMembers(holder: Record<string, unknown>): boolean {
  let isChanged = false;
  for (const member in holder) {
    const inner = holder[member];
    if (typeof inner === "object" && inner !== null) {
      if (redactMembers(inner as Record<string, unknown>)) isChanged = true;
    } else if (typeof inner === "string" && isWritten(member, inner)) {
      const clean = redacted(inner);
      if (clean === inner) continue;
      holder[member] = clean;
      isChanged = true;
    }
  }
  return isChanged;
}

/** By a person or a model. */
function isWritten(member: string, text: string): boolean {
  return text !== "" && !TECHNICAL.has(member) && !isEncoded(text);
}

/** Changes the texts of the elements in place. Returns the indexes of those that it has changed. */
function redactTexts(values: unknown[]): Set<number> {
  const lanes = new Map<string, Leaf[]>();
  const holder = values as unknown as Record<string, unknown>;
  for (const [event, value] of values.entries()) {
    const visit: VisitText = (lane, inside, member, text) => {
      const leaves = lanes.get(lane) ?? [];
      leaves.push({ event, holder: inside, member, text });
      lanes.set(lane, leaves);
    };
    if (typeof value === "string") visit("", holder, String(event), value);
    else walk(value, "", visit);
  }
  const changed = new Set<number>();
  for (const leaves of lanes.values()) redactLane(leaves, changed);
  return changed;
}

type VisitText = (lane: string, holder: Record<string, unknown>, member: string, text: string) => void;

function walk(value: unknown, path: string, visit: VisitText): void {
  if (!isObject(value) && !Array.isArray(value)) return;
  const place = isObject(value) ? placeOf(value) : "";
  const holder = value as Record<string, unknown>;
  for (const member in holder) {
    const inner = holder[member];
    if (typeof inner !== "string") walk(inner, `${path}${place}/${member}`, visit);
    else if (isWritten(member, inner)) visit(`${path}${place}/${member}`, holder, member, inner);
  }
}

function placeOf(value: JsonObject): string {
  let place = "";
  for (const name of PLACES) {
    const told = value[name];
    if (typeof told === "string" || typeof told === "number") place += `;${name}=${told}`;
  }
  return place;
}

/** The texts of a lane are one text in pieces: a finding leaves its placeholder in the piece where it begins. */
function redactLane(leaves: readonly Leaf[], changed: Set<number>): void {
  const findings = sensitiveIn(leaves.map(({ text }) => text).join(""));
  if (findings.length === 0) return;
  let from = 0;
  let next = 0;
  for (const { event, holder, member, text } of leaves) {
    const until = from + text.length;
    while ((findings[next]?.end ?? Number.POSITIVE_INFINITY) <= from) next++;
    let kept = "";
    let at = from;
    for (let index = next; index < findings.length; index++) {
      const { kind, start, end } = findings[index] as (typeof findings)[number];
      if (start >= until) break;
      kept += text.slice(at - from, Math.max(start, from) - from) + (start >= from ? placeholder(kind) : "");
      at = Math.min(end, until);
    }
    if (at > from || kept !== "") {
      holder[member] = kept + text.slice(at - from);
      changed.add(event);
    }
    from = until;
  }
}
