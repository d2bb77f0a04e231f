// A stream of an Ollama server -> neutral events, where it goes on with an answer that another server has begun. Every object
// holds the next piece of the answer, calls of tools whole.

import type { GenerationEvent } from "../../generation/events.ts";
import type { FinishReason } from "../../generation/result.ts";
import { isPresent, type JsonObject } from "../../lib/json.ts";
import { PartEvents } from "../part-events.ts";
import { decodeObject, type StreamDecoder } from "../protocol.ts";
import { nonEmptyText, objectOf, objectsOf, textOf } from "../reading.ts";
import { decodeUsage } from "./usage.ts";

export class OllamaStreamDecoder implements StreamDecoder {
  readonly #out = new PartEvents();
  #open: { type: "text" | "reasoning"; index: number } | undefined;
  #calls = 0;
  #hasStarted = false;

  push(data: string): readonly GenerationEvent[] {
    const told = decodeObject(data);
    if (isPresent(told.error)) {
      const message = nonEmptyText(told.error) ?? "the backend reported an error";
      this.#out.push({ type: "failure", failure: { message, status: 502 } });
      return this.#out.take();
    }
    if (!this.#hasStarted) {
      this.#hasStarted = true;
      this.#out.push({ type: "start", id: "", model: textOf(told.model), createdAt: 0 });
    }
    const { content, thinking, tool_calls } = objectOf(told.message);
    this.#say("reasoning", textOf(thinking) || textOf(told.thinking));
    this.#say("text", textOf(content) || textOf(told.response));
    for (const call of objectsOf(tool_calls)) this.#call(call);
    if (told.done === true) this.#finish(told);
    return this.#out.take();
  }

  /** The last object has said that it is one. */
  end(): readonly GenerationEvent[] {
    return [];
  }

  #say(type: "text" | "reasoning", text: string): void {
    if (text === "") return;
    if (this.#open?.type !== type) this.#open = { type, index: this.#out.start({ type }) };
    this.#out.delta(this.#open.index, text);
  }

  #call({ id, function: called }: JsonObject): void {
    const { name, arguments: given } = objectOf(called);
    this.#open = undefined;
    const ownId = `tool_${this.#calls++}`;
    const index = this.#out.start({ type: "tool-call", id: nonEmptyText(id) ?? ownId, name: textOf(name) });
    this.#out.delta(index, JSON.stringify(given ?? {}));
    this.#out.end(index);
  }

  #finish(told: JsonObject): void {
    this.#out.endAll();
    const usage = decodeUsage(told);
    if (usage !== undefined) this.#out.push({ type: "usage", usage });
    const reason: FinishReason = told.done_reason === "length" ? "length" : this.#calls > 0 ? "tool-calls" : "stop";
    this.#out.push({ type: "finish", finish: { reason } });
  }
}
