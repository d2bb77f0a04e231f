// The name of the model in an answer that passes in the backend's own bytes, where the client asked for a route: it is replaced by the
// name that the client asked for.

import { isObject, parseObject } from "../lib/json.ts";
import { withMembers } from "../lib/json-members.ts";
import type { AnswerEdits } from "./protocol.ts";
import { readEvents } from "./sse.ts";

/** Members in which a whole answer, or the object that an event announces, names its model. */
const NAMING = ["model", "modelVersion"] as const;
/** Members of events that hold the answer: of Messages and of Responses. */
const HOLDING = ["message", "response"] as const;

const decoder = new TextDecoder();

/** @param others - further edits of the answer, made before */
export function namedAs(name: string, others: AnswerEdits | undefined): AnswerEdits {
  let replaced: readonly { from: Buffer; to: Buffer }[] | undefined;

  function learn(events: Uint8Array): void {
    for (const { data } of readEvents(decoder.decode(events))) {
      const event = parseObject(data);
      const found = event && [event, ...HOLDING.map((member) => event[member])].map(nameIn).find(isFound);
      if (found === undefined) continue;
      replaced = found.told === name ? [] : replacements(found.member, found.told, name);
      return;
    }
  }

  return {
    whole(body, parsed) {
      const edited = others?.whole(body, parsed) ?? body;
      const found = nameIn(parsed);
      return found === undefined || found.told === name ? edited : withMembers(edited, { [found.member]: name });
    },
    push(received) {
      const events = others?.push(received) ?? received;
      if (replaced === undefined) learn(events);
      let edited = events;
      for (const { from, to } of replaced ?? []) edited = replaceAll(edited, from, to);
      return edited;
    },
    end: () => others?.end?.(),
  };
}

interface FoundName {
  member: string;
  told: string;
}

function nameIn(value: unknown): FoundName | undefined {
  if (!isObject(value)) return undefined;
  const member = NAMING.find((each) => typeof value[each] === "string");
  return member && { member, told: value[member] as string };
}

function isFound(found: FoundName | undefined): found is FoundName {
  return found !== undefined;
}

/** As backends write members, with a blank behind the colon and without. A quote inside a JSON string is escaped, so no text matches. */
function replacements(member: string, told: string, name: string) {
  return [":", ": "].map((colon) => ({
    from: Buffer.from(`"${member}"${colon}${JSON.stringify(told)}`),
    to: Buffer.from(`"${member}"${colon}${JSON.stringify(name)}`),
  }));
}

const { indexOf } = Buffer.prototype;

function replaceAll(bytes: Uint8Array, from: Buffer, to: Buffer): Uint8Array {
  let at: number = indexOf.call(bytes, from);
  if (at < 0) return bytes;
  const pieces: Uint8Array[] = [];
  let done = 0;
  for (; at >= 0; at = indexOf.call(bytes, from, done)) {
    pieces.push(bytes.subarray(done, at), to);
    done = at + from.length;
  }
  pieces.push(bytes.subarray(done));
  return Buffer.concat(pieces);
}
