// The name of the model in an answer that passes in the backend's own bytes, where the client asked for a route: it is replaced by the
// name that the client asked for.

import { isObject, type JsonObject, parseObject } from "../lib/json.ts";
import { withMembers, withMembersInside } from "../lib/json-members.ts";
import type { AnswerEdits } from "./protocol.ts";

/** Members in which a whole answer, or the object that an event announces, names its model. */
const NAMING = ["model", "modelVersion"] as const;
/** Members of events that hold the answer: of Messages and of Responses. */
const HOLDING = ["message", "response"] as const;

/** Both members begin so. */
const ANY_NAME = Buffer.from('"model');
const LINE_FEED = 10;

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** @param others - further edits of the answer, made before */
export function namedAs(name: string, others: AnswerEdits | undefined): AnswerEdits {
  /** How the latest events have written their name: those that do so too need not be read. */
  let usual: WrittenName | undefined;

  /** Reads every event, and changes what names the model alone. */
  function carefully(events: Uint8Array): Uint8Array {
    if (indexOf.call(events, ANY_NAME) < 0) return events;
    const edited = decoder.decode(events).split(BEHIND_EVENTS).map(renamed);
    return encoder.encode(edited.join(""));
  }

  function renamed(event: string): string {
    const lines = event.split(BEHIND_LINES);
    const data = lines.filter((line) => DATA.test(line));
    const text = data.map((line) => line.replace(DATA, "").replace(/[\r\n]+$/, "")).join("\n");
    const parsed = parseObject(text);
    const found = parsed && foundIn(parsed);
    if (found === undefined) return event;
    usual = writtenName(text, found, name) ?? usual;
    if (found.told === name) return event;
    const changes = { [found.member]: name };
    const bytes = encoder.encode(text);
    const changed =
      found.holder === undefined ? withMembers(bytes, changes) : withMembersInside(bytes, found.holder, changes);
    const [first = ""] = data;
    // A line feed between members is a blank; in one line the event is the same.
    const line = `${DATA.exec(first)?.[0]}${decoder.decode(changed).replaceAll("\n", " ")}${/[\r\n]*$/.exec(first)?.[0]}`;
    return lines.map((each) => (each === first ? line : DATA.test(each) ? "" : each)).join("");
  }

  return {
    whole(body, parsed) {
      const edited = others?.whole(body, parsed) ?? body;
      const found = nameIn(parsed);
      return found === undefined || found.told === name ? edited : withMembers(edited, { [found.member]: name });
    },
    push(received) {
      const events = others?.push(received) ?? received;
      return (usual && replacedIn(events, usual)) ?? carefully(events);
    },
    end: () => others?.end?.(),
  };
}

/** Events, and lines, each with its end. */
const BEHIND_EVENTS = /(?<=\r?\n\r?\n|\r\r)/;
const BEHIND_LINES = /(?<=\n|\r(?!\n))/;
const DATA = /^data: ?/;

interface FoundName {
  member: string;
  told: string;
  holder?: string;
}

/** In the event itself, or in the answer that it holds. */
function foundIn(event: JsonObject): FoundName | undefined {
  const own = nameIn(event);
  if (own !== undefined) return own;
  for (const holder of HOLDING) {
    const found = nameIn(event[holder]);
    if (found !== undefined) return { ...found, holder };
  }
  return undefined;
}

function nameIn(value: unknown): FoundName | undefined {
  if (!isObject(value)) return undefined;
  const member = NAMING.find((each) => typeof value[each] === "string");
  return member && { member, told: value[member] as string };
}

interface WrittenName {
  /** With its quotes. */
  member: Buffer;
  /** The member and its value. */
  from: Buffer;
  to: Buffer;
}

/** A quote inside a JSON string is escaped, so that no text looks like a member. */
function writtenName(text: string, { member, told }: FoundName, name: string): WrittenName | undefined {
  for (const [from, begin, value] of text.matchAll(/("\w+"\s*:\s*)("(?:[^"\\]|\\.)*")/g)) {
    if (begin?.startsWith(`"${member}"`) !== true || JSON.parse(value as string) !== told) continue;
    return {
      member: Buffer.from(`"${member}"`),
      from: Buffer.from(from),
      to: Buffer.from(begin + JSON.stringify(name)),
    };
  }
  return undefined;
}

const { indexOf } = Buffer.prototype;

/** Undefined where a name is written in another way, or where a line has several: only one of them is the answer's. */
function replacedIn(bytes: Uint8Array, { member, from, to }: WrittenName): Uint8Array | undefined {
  let at: number = indexOf.call(bytes, member);
  if (at < 0) return bytes;
  const pieces: Uint8Array[] = [];
  let done = 0;
  for (; at >= 0; at = indexOf.call(bytes, member, done)) {
    if (!isAt(bytes, from, at)) return undefined;
    const lineEnd = done === 0 ? 0 : indexOf.call(bytes, LINE_FEED, done);
    if (lineEnd < 0 || lineEnd > at) return undefined;
    pieces.push(bytes.subarray(done, at), to);
    done = at + from.length;
  }
  pieces.push(bytes.subarray(done));
  return Buffer.concat(pieces);
}

function isAt(bytes: Uint8Array, wanted: Uint8Array, at: number): boolean {
  for (let index = 0; index < wanted.length; index++) if (bytes[at + index] !== wanted[index]) return false;
  return true;
}
