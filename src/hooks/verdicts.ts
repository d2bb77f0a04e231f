// Checks what a hook has returned, from a module or by HTTP: nothing of it is trusted.

import type { HookEvent } from "../config/sections/hooks.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { GenerationResult } from "../generation/result.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import type { CheckedVerdict, Noted } from "./hook-wire.ts";

/** A hook has done something that it may not do. Its message is for the operator. */
export class HookFault extends Error {
  override readonly name = "HookFault";
}

const MAX_STATE_CHARACTERS = 256 * 1024;
const MAX_MESSAGE_CHARACTERS = 1_000;
const MAX_NOTES = 8;
const CODE = /^[A-Za-z0-9_.-]{1,64}$/;
const NOTE = /^[a-z0-9_]{1,40}$/;

const ALLOWED: Readonly<Record<HookEvent, readonly string[]>> = {
  request: ["pass", "change", "refuse", "answer"],
  attempt: ["pass", "change", "refuse"],
  answer: ["pass", "change", "refuse", "answer", "repair"],
  chunk: ["pass", "change", "refuse"],
  end: ["pass"],
};

/** @param written - a neutral request as the body of the event's format */
export function checkVerdict(
  event: HookEvent,
  returned: unknown,
  written: (request: GenerationRequest) => JsonObject,
): CheckedVerdict {
  if (returned === undefined || returned === null || event === "end") return { kind: "pass" };
  if (!isObject(returned)) throw new HookFault("the verdict must be an object, such as pass() returns");
  const { verdict } = returned;
  if (!ALLOWED[event].includes(verdict as string)) {
    throw new HookFault(`the verdict of ${event} must be one of ${ALLOWED[event].join(", ")}`);
  }
  const noted = notedIn(returned);
  switch (verdict) {
    case "change":
      return { ...noted, ...changeIn(event, returned, written) };
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
  event: HookEvent,
  { body, request, result, text, rest }: JsonObject,
  written: (request: GenerationRequest) => JsonObject,
): CheckedVerdict & { kind: "change" } {
  if (event === "chunk") {
    if (typeof text !== "string") throw new HookFault("a change of chunk must have a text");
    if (rest !== undefined && typeof rest !== "string") throw new HookFault("rest must be a text");
    return { kind: "change", text, ...(rest !== undefined && { rest }) };
  }
  if (isObject(body)) return { kind: "change", body: JSON.stringify(body) };
  if (event === "answer" && result !== undefined) return { kind: "change", result: resultIn(result) };
  if (event !== "answer" && isObject(request)) {
    return { kind: "change", body: JSON.stringify(written(request as unknown as GenerationRequest)) };
  }
  throw new HookFault(`a change of ${event} must have a body or a ${event === "answer" ? "result" : "request"}`);
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

const PARTS: ReadonlySet<unknown> = new Set([
  "text",
  "refusal",
  "reasoning",
  "tool-call",
  "search-result",
  "opaque",
  "image",
  "audio",
]);

/** A whole answer of the neutral model, or one of a text alone. */
function resultIn(given: unknown): GenerationResult {
  if (!isObject(given)) throw new HookFault("result must be an object");
  const { text } = given;
  const parts = typeof text === "string" ? [{ type: "text", text }] : given.parts;
  const isPart = (part: unknown) =>
    isObject(part) && PARTS.has(part.type) && (part.type !== "text" || typeof part.text === "string");
  if (!Array.isArray(parts) || !parts.every(isPart))
    throw new HookFault("result must have a text, or parts of an answer");
  const { id, model, createdAt, finish, usage } = given;
  return {
    id: typeof id === "string" ? id : "",
    model: typeof model === "string" ? model : "",
    createdAt: typeof createdAt === "number" ? createdAt : 0,
    parts,
    finish: isObject(finish) && typeof finish.reason === "string" ? finish : { reason: "stop" },
    ...(isObject(usage) && { usage }),
  } as unknown as GenerationResult;
}
