// Takes personal and secret texts out of a body before it is kept. In a stream they may be spread over several events: the texts
// that a client would put together are read together.

import { isObject, type JsonObject, parseJson } from "../lib/json.ts";
import { readEvents, singleEvents } from "../protocols/sse.ts";
import { placeholder, sensitiveIn } from "../redaction/sensitive.ts";

/** Members that no person writes, and whose values would mean another thing together. */
const TECHNICAL: ReadonlySet<string> = new Set([
  ...["id", "object", "model", "type", "role", "finish_reason", "finishReason", "stop_reason", "done_reason"],
  ...["item_id", "call_id", "signature", "thoughtSignature", "encrypted_content", "responseId", "modelVersion"],
  ...["created_at", "system_fingerprint", "service_tier", "obfuscation", "mimeType", "media_type"],
]);
/** Members that tell texts of one event from those of another at the same place. */
const PLACES = ["type", "index", "item_id", "output_index", "content_index", "summary_index"];

/** Pictures and sound; whoever writes so much without a space writes no text. */
const BASE64 = /^(data:[\w/+.-]+;base64,)?[A-Za-z0-9+/=_-]{1024,}$/;

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** @returns undefined where the body cannot be read, so that nothing is known of what it says */
export function redactBody(body: Uint8Array, contentType: string): Uint8Array | undefined {
  if (body.length === 0) return body;
  if (contentType.includes("event-stream")) return redactEvents(body);
  const text = decoder.decode(body);
  const whole = parseJson(text);
  if (whole !== undefined) {
    // Elements of a list at the top may be the events of a stream.
    const values = Array.isArray(whole) ? whole : [whole];
    return redactTexts(values).size > 0 ? encoder.encode(JSON.stringify(whole)) : body;
  }
  return /ndjson|jsonl|json-seq/.test(contentType) ? redactLines(text, body) : undefined;
}

function redactLines(text: string, body: Uint8Array): Uint8Array {
  const whole = text.slice(0, text.lastIndexOf("\n") + 1);
  const lines = whole.split("\n").slice(0, -1);
  const values = lines.map(parseJson);
  const changed = redactTexts(values);
  if (changed.size === 0 && whole.length === text.length) return body;
  const kept = lines.map((line, index) => (changed.has(index) ? JSON.stringify(values[index]) : line));
  return encoder.encode(kept.map((line) => `${line}\n`).join(""));
}

function redactEvents(body: Uint8Array): Uint8Array {
  const events = singleEvents(body)
    .map((event) => decoder.decode(event))
    .filter((event) => /(\n\r?\n|\r\r)$/.test(event));
  const values = events.map((event) => readEvents(event)[0]?.data).map((data) => data && (parseJson(data) ?? data));
  const told = values.map((value) => ({ value }));
  const changed = redactTexts(told);
  const kept = events.map((event, index) => (changed.has(index) ? rewritten(event, told[index]?.value) : event));
  return encoder.encode(kept.join(""));
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

/** Changes the texts in place. Returns the indexes of the values that it has changed. */
function redactTexts(values: readonly unknown[]): Set<number> {
  const lanes = new Map<string, Leaf[]>();
  for (const [event, value] of values.entries()) {
    walk(value, "", (lane, holder, member, text) => {
      const leaves = lanes.get(lane) ?? [];
      leaves.push({ event, holder, member, text });
      lanes.set(lane, leaves);
    });
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
  for (const [member, inner] of Object.entries(holder)) {
    const lane = `${path}${place}/${member}`;
    if (typeof inner !== "string") walk(inner, lane, visit);
    else if (!TECHNICAL.has(member) && inner !== "" && !BASE64.test(inner)) visit(lane, holder, member, inner);
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
