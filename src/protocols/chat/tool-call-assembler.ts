// The fragments of tool calls in a stream -> parts: which call a fragment belongs to, and when a call begins and ends.

import type { PartStart } from "../../generation/events.ts";
import { isObject, type JsonObject, parseObject } from "../../lib/json.ts";
import type { PartEvents } from "../part-events.ts";
import { DecodeError } from "../protocol.ts";
import { nonEmptyText } from "../reading.ts";
import { argumentText, isCustomCall, missingCallId } from "./tools.ts";
import { readThoughtSignature } from "./wire.ts";

interface AssembledCall {
  /** As the backend counts; undefined where it does not. */
  slot: number | undefined;
  id: string | undefined;
  name: string | undefined;
  isCustom: boolean;
  signature: string | undefined;
  /** All arguments so far; before the name is known they are held back. */
  text: string;
  /** Index of the part; undefined until it has begun. */
  part: number | undefined;
}

export class ToolCallAssembler {
  readonly #out: PartEvents;
  readonly #calls: AssembledCall[] = [];
  /** How many calls were made: their parts have begun. */
  count = 0;

  constructor(out: PartEvents) {
    this.#out = out;
  }

  /** An entry of delta.tool_calls. */
  push(entry: JsonObject): void {
    const isCustom = isCustomCall(entry);
    const called = isCustom ? entry.custom : entry.function;
    const { name, input, arguments: text } = isObject(called) ? called : ({} as JsonObject);
    const fragment = argumentText(isCustom ? input : text);
    this.#add(entry, nonEmptyText(name), isCustom, fragment);
  }

  /** The deprecated delta.function_call: a call without an id, of which there is one. */
  pushFunctionCall({ name, arguments: text }: JsonObject): void {
    this.#add({ index: 0 }, nonEmptyText(name), false, argumentText(text));
  }

  /** To be asked when the answer is over. */
  checkNames(): void {
    for (const call of this.#calls) {
      if (call.part === undefined && call.text !== "") throw new DecodeError("has a tool call without a name");
    }
  }

  #add(entry: JsonObject, name: string | undefined, isCustom: boolean, fragment: string): void {
    const slot = typeof entry.index === "number" ? entry.index : undefined;
    const id = nonEmptyText(entry.id);
    let call = this.#find(slot, id, name);
    if (call === undefined) {
      if (id === undefined && name === undefined && fragment === "") return;
      call = { slot, id, name, isCustom, signature: undefined, text: "", part: undefined };
      this.#calls.push(call);
    }
    call.id ??= id;
    call.name ??= name;
    call.isCustom ||= isCustom;
    call.signature ??= readThoughtSignature(entry);
    call.text += fragment;
    if (call.part === undefined) this.#begin(call);
    else if (this.#out.isOpen(call.part)) this.#out.delta(call.part, fragment);
    else if (fragment.trim() !== "") throw new DecodeError("goes on with a tool call that something else has followed");
  }

  /** The call that an entry goes on with; undefined for a new one. */
  #find(slot: number | undefined, id: string | undefined, name: string | undefined): AssembledCall | undefined {
    if (slot !== undefined) {
      const call = this.#calls.findLast((other) => other.slot === slot);
      // Some engines number every call 0; a new id alone proves nothing, others invent one for every fragment.
      const isNew = name !== undefined && call?.name !== undefined && id !== undefined && call.id !== id;
      return isNew ? undefined : call;
    }
    if (id !== undefined) {
      const call = this.#calls.find((other) => other.id === id);
      if (call !== undefined) return call;
    }
    const last = this.#calls.at(-1);
    // Without a number, a name begins a call, unless the last call still waits for its own.
    const isNew =
      (name !== undefined && last?.name !== undefined) ||
      (id !== undefined && last?.id !== undefined && name !== undefined);
    return isNew ? undefined : last;
  }

  #begin(call: AssembledCall): void {
    const { name, isCustom, signature } = call;
    if (name === undefined) return;
    this.#closeComplete();
    const part: PartStart = { type: "tool-call", id: call.id ?? missingCallId(this.count), name };
    if (isCustom) part.custom = true;
    if (signature !== undefined) part.signature = signature;
    call.part = this.#out.start(part);
    this.count++;
    this.#out.delta(call.part, call.text);
  }

  /** Calls with whole arguments end when the next begins, so that clients without interleaving see them at once. */
  #closeComplete(): void {
    for (const { part, isCustom, text } of this.#calls) {
      if (this.#out.isOpen(part) && !isCustom && isWholeObject(text)) this.#out.end(part);
    }
  }
}

/** Nothing that follows can be part of a JSON object that is complete. */
function isWholeObject(text: string): boolean {
  return text.trimEnd().endsWith("}") && parseObject(text) !== undefined;
}
