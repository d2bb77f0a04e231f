// The messages of a request -> input items for a backend.

import type {
  ContentPart,
  Message,
  OpaquePart,
  ReasoningPart,
  ToolCallPart,
  ToolResultPart,
} from "../../generation/content.ts";
import type { DropList } from "../../generation/dropped.ts";
import { pairedResults } from "../../generation/lost-results.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import { invalidField } from "../fields.ts";
import { encodeInputPart } from "./input-parts.ts";

export function encodeMessages(messages: readonly Message[], dropped: DropList): JsonObject[] {
  const encoder = new HistoryEncoder(dropped);
  for (const message of pairedResults(messages, dropped)) encoder.push(message);
  return encoder.items;
}

class HistoryEncoder {
  readonly items: JsonObject[] = [];
  readonly #dropped: DropList;
  /** Ids of calls of free-form tools: their outputs have a type of their own. */
  readonly #customCalls = new Set<string>();
  /** The content of the message item that further parts join. */
  #content: JsonObject[] | undefined;

  constructor(dropped: DropList) {
    this.#dropped = dropped;
  }

  push({ role, parts, name }: Message): void {
    if (name !== undefined) this.#dropped.add("name of messages");
    this.#content = undefined;
    for (const part of parts) {
      if (role === "assistant") this.#pushOfAssistant(part);
      else this.#pushOfUser(part, role);
    }
  }

  #pushOfUser(part: ContentPart, role: "user" | "system"): void {
    switch (part.type) {
      case "text":
      case "image":
      case "document":
        this.#pushContent(role, encodeInputPart(part, this.#dropped));
        return;
      case "tool-result":
        this.#pushItem(this.#toolResult(part));
        return;
      case "audio":
      case "video":
        throw invalidField("messages", `the backend of this model cannot read ${part.type}.`);
      case "opaque":
        this.#pushOpaque(part);
        return;
      default:
        this.#dropped.add(`${part.type} of a user`);
    }
  }

  #pushOfAssistant(part: ContentPart): void {
    switch (part.type) {
      case "text":
        this.#pushContent("assistant", { type: "output_text", text: part.text });
        return;
      case "refusal":
        this.#pushContent("assistant", { type: "refusal", refusal: part.text });
        return;
      case "reasoning":
        this.#pushReasoning(part);
        return;
      case "tool-call":
        this.#pushCall(part);
        return;
      case "tool-result":
        this.#pushItem(this.#toolResult(part));
        return;
      case "search-result":
        this.#dropped.add("results of earlier web searches");
        return;
      case "opaque":
        this.#pushOpaque(part);
        return;
      default:
        this.#dropped.add(`${part.type} of an earlier answer`);
    }
  }

  #pushContent(role: Message["role"], content: JsonObject): void {
    if (this.#content === undefined) {
      this.#content = [];
      this.items.push({ type: "message", role, content: this.#content });
    }
    this.#content.push(content);
  }

  #pushItem(item: JsonObject): void {
    this.#content = undefined;
    this.items.push(item);
  }

  #pushOpaque({ protocol, value }: OpaquePart): void {
    if (protocol === "responses") this.#pushItem(value);
    else this.#dropped.add(typeof value.type === "string" ? value.type : "content of another format");
  }

  /** Only sealed thoughts of this format can be replayed: without their proof the item is refused as unknown. */
  #pushReasoning({ origin, sealed, itemId, text }: ReasoningPart): void {
    if (origin !== "responses" || sealed === undefined) {
      this.#dropped.add("reasoning of earlier answers", "made by another service, or without its proof");
      return;
    }
    const summary = text === "" ? [] : [{ type: "summary_text", text }];
    this.#pushItem(compact({ type: "reasoning", id: itemId, summary, encrypted_content: sealed }));
  }

  #pushCall({ id, name, arguments: args, custom, serverSide, cache }: ToolCallPart): void {
    if (cache !== undefined) this.#dropped.add("cache_control");
    if (serverSide === true) {
      this.#dropped.add("earlier web searches");
      return;
    }
    if (custom !== true) {
      this.#pushItem({ type: "function_call", call_id: callId(id), name, arguments: args === "" ? "{}" : args });
      return;
    }
    this.#customCalls.add(id);
    this.#pushItem({ type: "custom_tool_call", call_id: callId(id), name, input: args });
  }

  #toolResult(part: ToolResultPart): JsonObject {
    if (part.cache !== undefined) this.#dropped.add("cache_control");
    const isCustom = this.#customCalls.has(part.callId);
    return {
      type: isCustom ? "custom_tool_call_output" : "function_call_output",
      call_id: callId(part.callId),
      output: this.#output(part),
    };
  }

  /** A string wherever it can be one: not every engine reads the list form. */
  #output({ parts, isError }: ToolResultPart): string | JsonObject[] {
    const encoded = parts.map((part) => encodeInputPart(part, this.#dropped));
    if (encoded.every((part) => part.type === "input_text")) {
      const text = encoded.map((part) => part.text).join("\n");
      return isError === true ? `${ERROR_MARK}${text}` : text;
    }
    return isError === true ? [{ type: "input_text", text: ERROR_MARK.trim() }, ...encoded] : encoded;
  }
}

/** The public service refuses longer ones. */
const LONGEST_CALL_ID = 64;

/** Ids of other formats may be longer; call and result get the same short one. */
function callId(id: string): string {
  if (id.length <= LONGEST_CALL_ID) return id;
  return `call_${new Bun.CryptoHasher("sha256").update(id).digest("hex").slice(0, 40)}`;
}

/** The format has no flag for a tool that failed; the model reads this instead. */
const ERROR_MARK = "Error: ";
