// What the story of a request says of a body that a hook has changed: names and sizes, never contents.

import { isObject, type JsonObject, parseJson } from "../lib/json.ts";
import { excessIn, type JsonShape } from "../lib/json-shape.ts";
import { HookFault } from "./hook-fault.ts";

/** What a hook may add to what it was given: the gateway works in proportion to it, while other requests wait. */
export const MAX_GROWTH_BYTES = 4 * 1024 * 1024;

const SHOWN_MEMBERS = 10;

/** Throws for JSON that is deeper or has more parts than a request may. */
export function checkJson(shape: JsonShape): void {
  const excess = excessIn(shape);
  if (excess !== undefined) throw new HookFault(`what it returned ${excess}`);
}

const decoder = new TextDecoder();

/** The names of the members that differ, with their sizes. */
export function changedMembers(before: Uint8Array, after: string): string {
  const was = objectIn(decoder.decode(before));
  const is = objectIn(after);
  const names = [...new Set([...Object.keys(was), ...Object.keys(is)])];
  const changed = names.filter((name) => !Bun.deepEquals(ownMember(was, name), ownMember(is, name), true));
  const shown = changed.slice(0, SHOWN_MEMBERS).map((name) => {
    const sizes = `${sizeOf(ownMember(was, name))} -> ${sizeOf(ownMember(is, name))} bytes`;
    return `${name.slice(0, 40).replaceAll(/[^\w.-]/g, "?")}: ${sizes}`;
  });
  return shown.join(", ");
}

/** @param firstBytes - of the body before all hooks, each of which may add to it */
export function checkGrowth(after: string, firstBytes: number): void {
  if (after.length > firstBytes + MAX_GROWTH_BYTES)
    throw new HookFault(`what it returned is larger than what it was given by more than ${MAX_GROWTH_BYTES} bytes`);
}

/** Clients choose the names: some of them every object has. */
function ownMember(object: JsonObject, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

function sizeOf(value: unknown): number {
  return value === undefined ? 0 : JSON.stringify(value).length;
}

function objectIn(text: string): JsonObject {
  const value = parseJson(text);
  return isObject(value) ? value : {};
}
