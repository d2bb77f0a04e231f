// A stream of generateContent answers -> neutral events. Every chunk is a whole answer object whose parts are the next
// piece; there are no marks for the begin and end of anything, and no mark for the end of the stream.

import type { GenerationEvent, PartStart } from "../../generation/events.ts";
import type { Failure, Finish } from "../../generation/result.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { DecodeError, type StreamDecoder } from "../protocol.ts";
import { arrayOf, nonEmptyText, objectsOf, textOf } from "../reading.ts";
import { CitationList } from "./citations.ts";
import { decodeError, hasError } from "./errors.ts";
import { blockedFinish, decodeFinish, failureOf } from "./finish-reason.ts";
import { decodeUsage } from "./usage.ts";

export function createStreamDecoder(): StreamDecoder {
  const answer = new AnswerDecoder();
  return {
    push(data) {
      // Neither is Google's, but servers in front of it send them.
      if (data === "") return [];
      if (data === "[DONE]") return answer.end();
      return answer.push(parseChunk(data));
    },
    end: () => answer.end(),
  };
}

function parseChunk(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    throw new DecodeError("is not valid JSON");
  }
}

interface OpenPart {
  kind: "text" | "reasoning";
  index: number;
  /** All of it, to find the words that a source supports. */
  text: string;
  /** A signature was put on it; what follows is another part. */
  isSealed: boolean;
}

const IGNORED_MEMBERS: ReadonlySet<string> = new Set(["thought", "thoughtSignature", "partMetadata"]);

/** Longest piece of the answer's id in the id of a call. */
const MAX_ID_LENGTH = 40;

/** Reads an answer chunk by chunk; a whole answer is a stream of one chunk. */
export class AnswerDecoder {
  #events: GenerationEvent[] = [];
  #open: OpenPart | undefined;
  #nextPart = 0;
  #responseId = "";
  #hasStarted = false;
  #isOver = false;
  readonly #callIds = new Set<string>();
  readonly #citations = new CitationList();
  #finish: string | undefined;
  #blockReason: string | undefined;
  #hasCandidate = false;
  #usage: unknown;
  /** What the last usage event told. */
  #toldUsage: unknown;

  /** @param chunk - an answer object, or a list of them, which a stream without alt=sse consists of */
  push(chunk: unknown): readonly GenerationEvent[] {
    for (const answer of Array.isArray(chunk) ? chunk : [chunk]) {
      if (this.#isOver) break;
      if (!isObject(answer)) throw new DecodeError("is no JSON object");
      if (hasError(answer)) this.#fail(decodeError(200, answer));
      else this.#read(answer);
    }
    return this.#take();
  }

  /** @param isWhole - the answer is known to be complete, though it may not say why it ended */
  end(isWhole = false): readonly GenerationEvent[] {
    if (this.#isOver) return this.#take();
    this.#isOver = true;
    const finish = this.#decodeFinish(isWhole);
    this.#close(finish !== undefined);
    if (this.#usage !== this.#toldUsage || this.#citations.searches > 0) this.#tellUsage();
    if (finish !== undefined) this.#events.push({ type: "finish", finish });
    return this.#take();
  }

  #take(): readonly GenerationEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #fail(failure: Failure): void {
    this.#isOver = true;
    this.#events.push({ type: "failure", failure });
  }

  /** Left to the end: some models say STOP in every chunk. */
  #decodeFinish(isWhole: boolean): Finish | undefined {
    if (this.#finish !== undefined) return decodeFinish(this.#finish, this.#callIds.size > 0);
    if (this.#blockReason !== undefined && !this.#hasCandidate) return blockedFinish(this.#blockReason);
    return isWhole && this.#hasCandidate ? decodeFinish("", this.#callIds.size > 0) : undefined;
  }

  #read(answer: JsonObject): void {
    if (!this.#hasStarted) this.#start(answer);
    if (isObject(answer.promptFeedback)) this.#blockReason ??= nonEmptyText(answer.promptFeedback.blockReason);
    const [candidate] = objectsOf(answer.candidates);
    if (isObject(answer.usageMetadata)) this.#usage = answer.usageMetadata;
    if (candidate !== undefined) this.#readCandidate(candidate);
    // The first counts tell the size of the prompt, which some clients show at once. Later ones wait for the end.
    if (!this.#isOver && this.#toldUsage === undefined && this.#usage !== undefined) this.#tellUsage();
  }

  #start({ responseId, modelVersion }: JsonObject): void {
    this.#hasStarted = true;
    this.#responseId = textOf(responseId);
    this.#events.push({ type: "start", id: this.#responseId, model: textOf(modelVersion), createdAt: 0 });
  }

  #readCandidate(candidate: JsonObject): void {
    this.#hasCandidate = true;
    this.#citations.read(candidate);
    const { content, finishReason } = candidate;
    if (isObject(content)) {
      for (const part of arrayOf(content.parts)) if (isObject(part)) this.#readPart(part);
    }
    const reason = nonEmptyText(finishReason);
    if (reason === undefined) return;
    const failure = failureOf(reason, nonEmptyText(candidate.finishMessage), this.#nextPart === 0);
    if (failure !== undefined) this.#fail(failure);
    else this.#finish = reason;
  }

  #tellUsage(): void {
    this.#toldUsage = this.#usage;
    const usage = decodeUsage(this.#usage, this.#citations.searches);
    if (usage !== undefined) this.#events.push({ type: "usage", usage });
  }

  #readPart(part: JsonObject): void {
    const signature = textOf(part.thoughtSignature);
    if (typeof part.text === "string") {
      this.#addText(part.thought === true ? "reasoning" : "text", part.text, signature);
    } else if (isObject(part.functionCall)) this.#addCall(part.functionCall, signature);
    else if (isObject(part.inlineData)) {
      // Drafts of a picture are thoughts, too.
      if (part.thought !== true) this.#addWhole(mediaPart(part, part.inlineData));
    } else if (Object.keys(part).some((member) => !IGNORED_MEMBERS.has(member))) this.#addWhole(opaque(part));
    else this.#sign(signature);
  }

  #addText(kind: OpenPart["kind"], text: string, signature: string): void {
    if (text !== "") {
      let open = this.#open;
      if (open?.kind !== kind || open.isSealed) {
        this.#close(false);
        open = { kind, index: this.#startPart({ type: kind }), text: "", isSealed: false };
        this.#open = open;
      }
      if (kind === "text") open.text += text;
      this.#events.push({ type: "delta", index: open.index, text });
    }
    this.#sign(signature);
  }

  /** A signature without text belongs to what was said before it. Without anything before it, it is not needed. */
  #sign(signature: string): void {
    if (signature === "" || this.#open === undefined || this.#open.isSealed) return;
    this.#open.isSealed = true;
    this.#events.push({ type: "seal", index: this.#open.index, origin: "generate-content", signature });
  }

  #addCall(call: JsonObject, signature: string): void {
    const name = nonEmptyText(call.name);
    if (name === undefined) throw new DecodeError("has a function call without a name");
    if (call.willContinue === true) throw new DecodeError("has a function call in pieces, which was not asked for");
    const args = call.args ?? {};
    if (!isObject(args)) throw new DecodeError("has arguments of a function call that are no object");
    this.#close(false);
    const part: PartStart = { type: "tool-call", id: this.#callId(call.id), name };
    if (signature !== "") part.signature = signature;
    const index = this.#startPart(part);
    this.#events.push({ type: "delta", index, text: JSON.stringify(args) }, { type: "part-end", index });
  }

  /**
   * Older models give no ids, and some servers give one twice. An id made from that of the answer is unique by itself;
   * without one the id has no known prefix, so that it is made unique where ids are rewritten.
   */
  #callId(given: unknown): string {
    const said = nonEmptyText(given);
    const count = this.#callIds.size;
    const answer = this.#responseId.replace(/[^A-Za-z0-9_-]/g, "").slice(0, MAX_ID_LENGTH);
    const made = answer === "" ? `tool_${count}` : `call_${answer}_${count}`;
    const id = said === undefined || this.#callIds.has(said) ? made : said;
    this.#callIds.add(id);
    return id;
  }

  #addWhole(part: PartStart): void {
    this.#close(false);
    this.#events.push({ type: "part-end", index: this.#startPart(part) });
  }

  #startPart(part: PartStart): number {
    const index = this.#nextPart++;
    this.#events.push({ type: "part-start", index, part });
    return index;
  }

  #close(isLast: boolean): void {
    const open = this.#open;
    if (open === undefined) return;
    this.#open = undefined;
    const { kind, index, text } = open;
    if (kind === "text") {
      for (const citation of this.#citations.take(text, isLast)) {
        this.#events.push({ type: "citation", index, citation });
      }
    }
    this.#events.push({ type: "part-end", index });
  }
}

function mediaPart(part: JsonObject, { mimeType, data }: JsonObject): PartStart {
  const mediaType = textOf(mimeType);
  if (typeof data !== "string") return opaque(part);
  const source = { kind: "base64", mediaType, data } as const;
  if (mediaType.startsWith("image/")) return { type: "image", source };
  return mediaType.startsWith("audio/") ? { type: "audio", source } : opaque(part);
}

function opaque(value: JsonObject): PartStart {
  return { type: "opaque", protocol: "generate-content", value };
}
