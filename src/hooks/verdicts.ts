// Checks what a hook has returned, from a module or by HTTP: nothing of it is trusted.

import type { HookEvent } from "../config/sections/hooks.ts";
import type { GenerationRequest } from "../generation/request.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import { resultIn } from "./answered-result.ts";
import { changedMembers, checkGrowth } from "./changes.ts";
import { HookFault } from "./hook-fault.ts";
import type { CheckedVerdict, HookCall, Noted } from "./hook-wire.ts";
import { decodeAnswerBody, NEUTRAL } from "./neutral-forms.ts";

const MAX_STATE_CHARACTERS = 256 * 1024;
const MAX_MESSAGE_CHARACTERS = 1_000;
const MAX_NOTES = 8;
const CODE = /^[A-Za-z0-9_.-]{1,64}$/;
const NOTHING = new Uint8Array(0);
const NOTE = /^[a-z0-9_]{1,40}$/;

/** What a verdict is checked against. */
type VerdictCall = Pick<HookCall, "event" | "info" | "data">;

const ALLOWED: Readonly<Record<HookEvent, readonly string[]>> = {
  request: ["pass", "change", "refuse", "answer"],
  attempt: ["pass", "change", "refuse"],
  answer: ["pass", "change", "refuse", "answer", "repair"],
  chunk: ["pass", "change", "refuse"],
  end: ["pass"],
};

/** @param written - a neutral request as the body of the event's format */
export function checkVerdict(
  call: VerdictCall,
  returned: unknown,
  written: (request: GenerationRequest) => JsonObject,
): CheckedVerdict {
  const { event } = call;
  if (returned === undefined || returned === null || event === "end") return { kind: "pass" };
  if (!isObject(returned)) throw new HookFault("the verdict must be an object, such as pass() returns");
  const { verdict } = returned;
  if (!ALLOWED[event].includes(verdict as string)) {
    throw new HookFault(`the verdict of ${event} must be one of ${ALLOWED[event].join(", ")}`);
  }
  const noted = notedIn(returned);
  switch (verdict) {
    case "change":
      return { ...noted, ...changeIn(call, returned, written) };
    case "refuse":
      return { ...noted, ...refusalIn(returned) };
    case "answer":
      return { ...noted, kind: "answer", result: resultIn(returned.result) };
    case "repair":
      return { ...noted, kind: "repair", message: messageIn(returned.message) };
    default:
      return { ...noted, kind: "pass" };
  }
}

function notedIn({ state, note }: JsonObject): Noted {
  const noted: Noted = {};
  if (state !== undefined) {
    const text = JSON.stringify(state);
    if (text === undefined) throw new HookFault("state must be a JSON value");
    if (text.length > MAX_STATE_CHARACTERS)
      throw new HookFault(`state must be at most ${MAX_STATE_CHARACTERS} characters`);
    noted.state = text;
  }
  if (note === undefined) return noted;
  const entries = isObject(note) ? Object.entries(note) : [];
  const isGood = ([name, value]: [string, unknown]) =>
    NOTE.test(name) && (typeof value === "boolean" || Number.isFinite(value));
  if (!isObject(note) || entries.length > MAX_NOTES || !entries.every(isGood)) {
    throw new HookFault(`note must have at most ${MAX_NOTES} numbers or truth values under names of a-z, 0-9 and _`);
  }
  noted.note = Object.fromEntries(entries) as Record<string, number | boolean>;
  return noted;
}

function changeIn(
  { event, info: { format }, data }: VerdictCall,
  { body, request, result, text, rest }: JsonObject,
  written: (request: GenerationRequest) => JsonObject,
): CheckedVerdict & { kind: "change" } {
  if (event === "chunk") {
    if (typeof text !== "string") throw new HookFault("a change of chunk must have a text");
    if (rest !== undefined && typeof rest !== "string") throw new HookFault("rest must be a text");
    return { kind: "change", text, ...(rest !== undefined && { rest }) };
  }
  if (event === "answer") {
    if (isObject(body) && format !== NEUTRAL) return changedBody(data, checkedAnswer(format, body));
    if (body === undefined && result === undefined)
      throw new HookFault("a change of answer must have a body or a result");
    return { kind: "change", result: resultIn(body ?? result) };
  }
  if (isObject(body)) return changedBody(data, body);
  if (isObject(request)) return changedBody(data, written(request as unknown as GenerationRequest));
  throw new HookFault(`a change of ${event} must have a body or a request`);
}

function changedBody({ body: given = NOTHING }: VerdictCall["data"], changed: JsonObject) {
  const body = JSON.stringify(changed);
  checkGrowth(body, given.length);
  return { kind: "change" as const, body, changes: changedMembers(given, body) };
}

/** Clients would be given what they cannot read. */
function checkedAnswer(format: string, body: JsonObject): JsonObject {
  let trouble = "";
  try {
    if (decodeAnswerBody(format, body) !== undefined) return body;
  } catch (error) {
    trouble = `: ${(error as Error).message}`;
  }
  throw new HookFault(`the changed answer cannot be read as ${format}${trouble}`);
}

function refusalIn({ status, code, message }: JsonObject): CheckedVerdict {
  if (!Number.isInteger(status) || (status as number) < 400 || (status as number) > 599) {
    throw new HookFault("the status of a refusal must be from 400 to 599");
  }
  if (typeof code !== "string" || !CODE.test(code)) {
    throw new HookFault("the code of a refusal must be at most 64 letters, digits and the signs _ . -");
  }
  return { kind: "refuse", status: status as number, code, message: messageIn(message) };
}

function messageIn(message: unknown): string {
  if (typeof message !== "string" || message === "") throw new HookFault("message must be a text");
  return message.slice(0, MAX_MESSAGE_CHARACTERS);
}
