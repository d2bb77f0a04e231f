// What a turn adds to the conversation: whole messages, each call with its result right behind it, at every moment.

import type { ContentPart, Message, ToolCallPart } from "../generation/content.ts";

interface TranscriptParts {
  history: Message[];
  prompt: ContentPart[];
  appended(message: Message): void;
  newId(): string;
}

export class TurnTranscript {
  readonly #parts: TranscriptParts;
  readonly #callIds = new Set<string>();
  /** Held back until it is known that a model can read it. */
  #prompt: Message | undefined;

  constructor(parts: TranscriptParts) {
    this.#parts = parts;
    for (const { parts: said } of parts.history) {
      for (const part of said) if (part.type === "tool-call") this.#callIds.add(part.id);
    }
    if (parts.prompt.length > 0) this.#prompt = { role: "user", parts: parts.prompt };
  }

  /** The history, and the prompt that is still held back. */
  get messages(): readonly Message[] {
    const { history } = this.#parts;
    return this.#prompt === undefined ? history : [...history, this.#prompt];
  }

  /**
   * A prompt that no backend understands (e.g. a picture for a model that reads text) is never kept: it would be refused
   * again with everything that is said after it.
   */
  keepPrompt(): void {
    const prompt = this.#prompt;
    this.#prompt = undefined;
    if (prompt !== undefined) this.#append(prompt);
  }

  /** Messages that belong together, in one step. */
  add(messages: readonly Message[]): void {
    this.keepPrompt();
    for (const message of messages) this.#append(message);
  }

  /** The calls with ids that no other call of the conversation has. */
  distinct(parts: readonly ContentPart[]): ContentPart[] {
    return parts.map((part) => (part.type === "tool-call" ? this.#distinctCall(part) : part));
  }

  #distinctCall(call: ToolCallPart): ToolCallPart {
    const isNew = call.id !== "" && !this.#callIds.has(call.id);
    // A call that the backend runs itself keeps its id: other parts of the answer refer to it.
    const id = isNew || call.serverSide === true ? call.id : `call_${this.#parts.newId().replaceAll("-", "")}`;
    this.#callIds.add(id);
    return id === call.id ? call : { ...call, id };
  }

  #append(message: Message): void {
    this.#parts.history.push(message);
    this.#parts.appended(message);
  }
}
