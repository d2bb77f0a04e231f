// The fragments of tool calls in a stream -> parts: which call a fragment belongs to, and when a call begins and ends.

import type { GenerationEvent, PartStart } from "../../generation/events.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { DecodeError } from "../protocol.ts";
import { nonEmptyText } from "../reading.ts";
import { argumentText, isCustomCall, missingCallId } from "./tools.ts";
import { readThoughtSignature } from "./wire.ts";

interface Call {
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
  isClosed: boolean;
}

interface Output {
  /** Begins a part and returns its index. */
  start(part: PartStart): number;
  emit(event: GenerationEvent): void;
}

export class ToolCallAssembler {
  readonly #output: Output;
  readonly #calls: Call[] = [];
  /** Calls whose part has begun. */
  #begun = 0;
  #open = 0;

  constructor(output: Output) {
    this.#output = output;
  }

  /** How many calls were made. */
  get count(): number {
    return this.#begun;
  }

  /** Whether the part of a call is open. */
  get isOpen(): boolean {
    return this.#open > 0;
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

  /** Ends what is open because something else begins. */
  close(): void {
    if (this.#open === 0) return;
    for (const call of this.#calls) this.#end(call);
  }

  /** The answer is over. */
  finish(): void {
    for (const call of this.#calls) {
      if (call.part === undefined && call.text !== "") throw new DecodeError("has a tool call without a name");
    }
    this.close();
  }

  #add(entry: JsonObject, name: string | undefined, isCustom: boolean, fragment: string): void {
    const slot = typeof entry.index === "number" ? entry.index : undefined;
    const id = nonEmptyText(entry.id);
    let call = this.#find(slot, id, name);
    if (call === undefined) {
      if (id === undefined && name === undefined && fragment === "") return;
      call = { slot, id, name, isCustom, signature: undefined, text: "", part: undefined, isClosed: false };
      this.#calls.push(call);
    }
    call.id ??= id;
    call.name ??= name;
    call.isCustom ||= isCustom;
    call.signature ??= readThoughtSignature(entry);
    call.text += fragment;
    if (call.part === undefined) this.#begin(call);
    else if (fragment !== "") this.#continue(call, fragment);
  }

  /** The call that an entry goes on with; undefined for a new one. */
  #find(slot: number | undefined, id: string | undefined, name: string | undefined): Call | undefined {
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

  #begin(call: Call): void {
    const { name, isCustom, signature } = call;
    if (name === undefined) return;
    this.#closeComplete();
    const part: PartStart = { type: "tool-call", id: call.id ?? missingCallId(this.#begun), name };
    if (isCustom) part.custom = true;
    if (signature !== undefined) part.signature = signature;
    call.part = this.#output.start(part);
    this.#begun++;
    this.#open++;
    if (call.text !== "") this.#output.emit({ type: "delta", index: call.part, text: call.text });
  }

  #continue(call: Call, fragment: string): void {
    if (!call.isClosed) this.#output.emit({ type: "delta", index: call.part as number, text: fragment });
    else if (fragment.trim() !== "") throw new DecodeError("goes on with a tool call that something else has followed");
  }

  /** Calls with whole arguments end when the next begins, so that clients without interleaving see them at once. */
  #closeComplete(): void {
    for (const call of this.#calls) {
      if (call.part !== undefined && !call.isClosed && !call.isCustom && isWholeObject(call.text)) this.#end(call);
    }
  }

  #end(call: Call): void {
    if (call.part === undefined || call.isClosed) return;
    call.isClosed = true;
    this.#open--;
    this.#output.emit({ type: "part-end", index: call.part });
  }
}

/** Nothing that follows can be part of a JSON object that is complete. */
function isWholeObject(text: string): boolean {
  if (!text.trimEnd().endsWith("}")) return false;
  try {
    return isObject(JSON.parse(text));
  } catch {
    return false;
  }
}
