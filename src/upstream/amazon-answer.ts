// The answers of Bedrock in the form in which all others come: frames as Server-Sent Events, and refusals with the name of
// their exception, which stands in a header, in the body.

import type { EventStreamCodec } from "@smithy/eventstream-codec";
import type { BackendAnswer, BackendCall, BodyReceiver } from "../backends/transport.ts";
import { readWholeBody } from "../backends/whole-body.ts";
import { parseJson } from "../lib/json.ts";
import { exceptionAs, statusOfException } from "../protocols/converse/errors.ts";
import { BrokenFrame, FrameCutter, frameAsEvent } from "../protocols/converse/frames.ts";

const FRAMES = "application/vnd.amazon.eventstream";
const EVENTS = "text/event-stream";
/** A longer refusal is told by its status and its header. */
const MAX_REFUSAL_BYTES = 1024 * 1024;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Rejects as the answer of the call does. */
export async function readAmazonAnswer(call: BackendCall): Promise<BackendAnswer> {
  const answer = await call.answer;
  if (answer.status >= 400) return new ExceptionAnswer(call, answer);
  if (answer.header("content-type")?.startsWith(FRAMES) !== true) return answer;
  return new FramedAnswer(call, answer, await loadCodec());
}

async function loadCodec(): Promise<EventStreamCodec> {
  const { EventStreamCodec } = await import("@smithy/eventstream-codec");
  return new EventStreamCodec(
    (bytes) => decoder.decode(bytes as Uint8Array),
    (text) => encoder.encode(text),
  );
}

/** A refusal, whose status follows from its exception. */
class ExceptionAnswer implements BackendAnswer {
  readonly status: number;
  readonly #call: BackendCall;
  readonly #answer: BackendAnswer;
  readonly #name: string;

  constructor(call: BackendCall, answer: BackendAnswer) {
    this.#call = call;
    this.#answer = answer;
    this.#name = answer.header("x-amzn-errortype") ?? "";
    this.status = statusOfException(this.#name, answer.status);
  }

  header(name: string): string | null {
    return this.#answer.header(name);
  }

  read(receiver: BodyReceiver): void {
    const tell = (body: Uint8Array | undefined) => {
      if (body === undefined) this.#call.abort();
      const told = exceptionAs(this.#name, this.status, parseJson(decoder.decode(body)));
      receiver.received(encoder.encode(JSON.stringify(told)));
      receiver.ended();
    };
    try {
      const body = readWholeBody(this.#answer, MAX_REFUSAL_BYTES);
      if (body instanceof Promise) body.then(tell).catch((error) => receiver.failed(error));
      else tell(body);
    } catch (error) {
      receiver.failed(error);
    }
  }

  pause(): void {
    this.#answer.pause();
  }

  resume(): void {
    this.#answer.resume();
  }
}

/** An answer whose frames come as events. */
class FramedAnswer implements BackendAnswer, BodyReceiver {
  readonly #call: BackendCall;
  readonly #answer: BackendAnswer;
  readonly #codec: EventStreamCodec;
  readonly #cutter = new FrameCutter();
  #receiver: BodyReceiver | undefined;
  #failure: unknown;

  constructor(call: BackendCall, answer: BackendAnswer, codec: EventStreamCodec) {
    this.#call = call;
    this.#answer = answer;
    this.#codec = codec;
  }

  get status(): number {
    return this.#answer.status;
  }

  header(name: string): string | null {
    return name === "content-type" ? EVENTS : this.#answer.header(name);
  }

  read(receiver: BodyReceiver): void {
    this.#receiver = receiver;
    if (this.#failure !== undefined) receiver.failed(this.#failure);
    else this.#answer.read(this);
  }

  pause(): void {
    this.#answer.pause();
  }

  resume(): void {
    this.#answer.resume();
  }

  /** A piece without a whole frame is passed on as an empty one: it shows that the backend is alive. */
  received(piece: Uint8Array): void {
    if (this.#failure !== undefined) return;
    let events = "";
    let broken: unknown;
    try {
      this.#cutter.push(piece, (frame) => {
        events += frameAsEvent(this.#codec, frame);
      });
    } catch (error) {
      broken = error;
    }
    this.#receiver?.received(encoder.encode(events));
    if (broken !== undefined) this.#break(broken);
  }

  ended(): void {
    if (this.#failure !== undefined) return;
    if (this.#cutter.isBetweenFrames) this.#receiver?.ended();
    else this.#break(new BrokenFrame("half a frame"));
  }

  failed(error: unknown): void {
    if (this.#failure === undefined) this.#receiver?.failed(error);
  }

  /** What comes behind a broken frame means nothing. */
  #break(error: unknown): void {
    this.#failure = error;
    this.#receiver?.failed(error);
    this.#call.abort();
  }
}
