// Answers on their way through hooks: whole ones in the client's bytes, streams and what was kept of them by way of neutral events.

import { formatOf } from "../backends/operations.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { asEvents } from "../generation/as-events.ts";
import { collect } from "../generation/collect.ts";
import type { GenerationEvent } from "../generation/events.ts";
import type { GenerationResult } from "../generation/result.ts";
import { decodeAnswerBody, withReply } from "../hooks/neutral-forms.ts";
import { type JsonObject, parseObject } from "../lib/json.ts";
import { JsonBody } from "../lib/request-body.ts";
import type { Logger } from "../logging/logger.ts";
import { type AnswerContext, type ClientProtocol, DecodeError } from "../protocols/protocol.ts";
import { backendProtocol, clientProtocol } from "../protocols/registry.ts";
import { EventFramer, readEvents } from "../protocols/sse.ts";
import { requestInOwnFormat } from "../protocols/stream-join.ts";
import type { UpstreamFailure } from "../upstream/failure.ts";
import { EVENT_STREAM } from "../upstream/send.ts";
import type { RequestContext } from "./context.ts";
import type { Generate, Generated, StreamFrame } from "./generate.ts";
import { type CalledHook, type HookRun, hasEvent } from "./hook-run.ts";
import { AnswerStages, named, type RepairAsk, textOf } from "./hook-stages.ts";
import type { ModelRequest } from "./model-request.ts";

const decoder = new TextDecoder();
const encoder = new TextEncoder();

interface HookedAnswersParts {
  wallTime(): number;
  log: Pick<Logger, "error">;
}

/** An answer and all that is needed to read and write it. */
interface HookedAnswer {
  run: HookRun;
  readers: readonly CalledHook[];
  client: ClientProtocol;
  answer: AnswerContext;
  askAgain: RepairAsk;
  log: Pick<Logger, "error">;
}

/** Makes a generator whose answers pass the hooks of their requests. */
export function withHookedAnswers(generate: Generate, { wallTime, log }: HookedAnswersParts): Generate {
  return async (context, request, frame) => {
    const run = context.hooks;
    const readers = run?.readers() ?? [];
    if (run === undefined || readers.length === 0) return await generate(context, request, frame);
    const client = clientProtocol(formatOf(request.operation));
    const unixTime = Math.floor(wallTime() / 1000);
    const answering: HookedAnswer = {
      ...{ run, readers, client, log },
      answer: answerContext(client, request, unixTime),
      askAgain: (said, message) => askAgain(generate, context, request, said, message),
    };
    const inner = innerFrame(frame);
    const generated = await generate(context, request, request.stream ? inner : frame);
    return await throughHooks(answering, generated, inner, frame);
  };
}

export function answerContext(client: ClientProtocol, request: ModelRequest, createdAt: number): AnswerContext {
  const nonce = crypto.randomUUID().replaceAll("-", "");
  return { model: request.askedModel, createdAt, nonce, request: requestInOwnFormat(client, request.body) };
}

async function throughHooks(
  answering: HookedAnswer,
  generated: Generated,
  inner: InnerFrame,
  frame: StreamFrame,
): Promise<Generated> {
  switch (generated.kind) {
    case "failed":
      return generated;
    case "replayed": {
      const { contentType, body } = generated.replay;
      const changed = isEvents(contentType) ? await wholeStream(answering, body) : await wholeAnswer(answering, body);
      return { ...generated, replay: { contentType, body: changed } };
    }
    case "plain": {
      const { contentType, body } = generated.result;
      const changed = isEvents(contentType) ? await wholeStream(answering, body) : await wholeAnswer(answering, body);
      return { ...generated, result: { ...generated.result, body: changed } };
    }
    case "stream":
      return { ...generated, body: hookedStream(answering, generated.body, inner, frame) };
  }
}

function isEvents(contentType: string): boolean {
  return contentType.startsWith(EVENT_STREAM);
}

/** A whole answer in its client's format; the bytes stay where no hook changes them. */
async function wholeAnswer(answering: HookedAnswer, body: Uint8Array): Promise<Uint8Array> {
  let left = body;
  for (const called of answering.readers) {
    left = hasEvent(called.hook, called.loaded, "answer")
      ? await answerThrough(answering, called, left)
      : await piecesThrough(answering, called, left);
  }
  return left;
}

async function answerThrough(answering: HookedAnswer, called: CalledHook, body: Uint8Array): Promise<Uint8Array> {
  const { run, client, answer, askAgain } = answering;
  let left = body;
  for (let round = 0; ; round++) {
    const given = left;
    const verdict = await run.call(called, "answer", { body: given, round }, (changed) =>
      changed.body === undefined ? `${given.length} bytes before` : changed.changes,
    );
    switch (verdict.kind) {
      case "answer":
        return written(client, named(verdict.result, headOf(resultIn(answering, given), answer)), answer);
      case "change":
        if (verdict.body !== undefined) return encoder.encode(verdict.body);
        return verdict.result === undefined ? given : written(client, verdict.result, answer);
      case "repair": {
        const before = resultIn(answering, given);
        const again = round === 0 && before !== undefined ? await askAgain(textOf(before), verdict.message) : undefined;
        if (again === undefined) {
          run.failed(called.hook, "answer");
          return given;
        }
        left = written(client, { ...again, ...headOf(before, answer) }, answer);
        break;
      }
      default:
        return given;
    }
  }
}

/** For a hook that reads pieces alone. */
async function piecesThrough(answering: HookedAnswer, called: CalledHook, body: Uint8Array): Promise<Uint8Array> {
  const { run, client, answer, askAgain } = answering;
  const before = resultIn(answering, body);
  if (before === undefined) {
    run.failed(called.hook, "chunk");
    return body;
  }
  const stages = new AnswerStages(run, [called], askAgain);
  const events: GenerationEvent[] = [];
  for (const event of asEvents(before)) events.push(...(await stages.push(event)));
  stages.end();
  const after = collect(events);
  return after === undefined || Bun.deepEquals(after, before) ? body : written(client, after, answer);
}

function written(client: ClientProtocol, result: GenerationResult, answer: AnswerContext): Uint8Array {
  return encoder.encode(JSON.stringify(client.encodeResponse(result, answer)));
}

function resultIn({ client }: HookedAnswer, body: Uint8Array): GenerationResult | undefined {
  const value = parseObject(decoder.decode(body));
  try {
    return value && decodeAnswerBody(client.name, value);
  } catch {
    return undefined;
  }
}

function headOf(result: GenerationResult | undefined, { model, createdAt, nonce }: AnswerContext) {
  return { id: result?.id ?? nonce, model: result?.model ?? model, createdAt: result?.createdAt ?? createdAt };
}

/** A stream that is there as a whole. */
async function wholeStream(answering: HookedAnswer, body: Uint8Array): Promise<Uint8Array> {
  const events = new HookedEvents(answering);
  try {
    await events.push(body);
    await events.end();
  } catch (error) {
    throw toRefusal(error);
  }
  return events.take() ?? new Uint8Array(0);
}

/** The events of a stream in the client's format -> the same behind the hooks. */
class HookedEvents {
  readonly #decoder;
  readonly #encoder;
  readonly #framer = new EventFramer();
  readonly #stages: AnswerStages;
  #written = "";
  /** The answer is complete. */
  #isFinished = false;
  hasFailed = false;

  constructor({ run, readers, client, answer, askAgain }: HookedAnswer) {
    this.#decoder = backendProtocol(client.name).streamDecoder({ hidesUsage: false });
    this.#encoder = client.streamEncoder(answer);
    this.#stages = new AnswerStages(run, readers, askAgain);
  }

  async push(piece: Uint8Array): Promise<void> {
    const events = this.#framer.push(piece);
    if (events !== undefined) await this.#read(events);
  }

  async end(): Promise<void> {
    const rest = this.#framer.rest();
    if (rest.length > 0) await this.#read(rest);
    if (!this.hasFailed) await this.#write(this.#decoder.end());
    if (!this.#isFinished && !this.hasFailed) await this.#releaseHeld();
    this.#stages.end();
    if (this.#isFinished && !this.hasFailed) this.#written += this.#encoder.end();
  }

  /** The stream broke off: what hooks have of it comes before the error. */
  async #releaseHeld(): Promise<void> {
    const failure = { message: "the stream broke off", status: 502 };
    for (const each of await this.#stages.push({ type: "failure", failure })) {
      if (each.type !== "failure") this.#written += this.#encoder.push(each);
    }
  }

  /** What was written since the last time, also before a refusal. */
  take(): Uint8Array | undefined {
    const text = this.#written;
    this.#written = "";
    return text === "" ? undefined : encoder.encode(text);
  }

  async #read(events: Uint8Array): Promise<void> {
    for (const { data, name } of readEvents(decoder.decode(events))) {
      if (this.hasFailed) break;
      await this.#write(this.#decoder.push(data, name));
    }
  }

  async #write(events: readonly GenerationEvent[]): Promise<void> {
    for (const event of events) {
      for (const each of await this.#stages.push(event)) {
        if (each.type === "finish") this.#isFinished = true;
        if (each.type === "failure") this.hasFailed = true;
        this.#written += this.#encoder.push(each);
      }
    }
  }
}

/** The frame of the stream behind the hooks: its end is not yet that of the client's. */
interface InnerFrame extends StreamFrame {
  readonly failure: UpstreamFailure | undefined;
}

function innerFrame(frame: StreamFrame): InnerFrame {
  let failure: UpstreamFailure | undefined;
  return {
    // The client's own error is written behind the hooks.
    errorEvent: () => "",
    ended(with_) {
      failure = with_;
    },
    refused: frame.refused,
    get failure() {
      return failure;
    },
  };
}

/** Takes a piece only when the client has taken the one before, and gives up the stream when the client leaves. */
function hookedStream(
  answering: HookedAnswer,
  body: ReadableStream<Uint8Array>,
  inner: InnerFrame,
  frame: StreamFrame,
): ReadableStream {
  const reader = body.getReader();
  const events = new HookedEvents(answering);
  let sent: Uint8Array | undefined;
  let isOver = false;
  function over(failure: UpstreamFailure | undefined): void {
    if (!isOver) frame.ended(failure);
    isOver = true;
  }
  const source: Bun.DirectUnderlyingSource<Uint8Array> = {
    type: "direct",
    async pull(client) {
      const give = async (bytes: Uint8Array | undefined) => {
        if (bytes === undefined || isOver) return;
        sent = bytes;
        const taken = client.write(bytes);
        if (typeof taken !== "number") await taken;
        void client.flush();
      };
      try {
        for (;;) {
          const { done, value } = await reader.read();
          if (done) await events.end();
          else await events.push(value);
          await give(events.take());
          if (done) break;
        }
        const { failure } = inner;
        const told = failure === undefined || events.hasFailed ? undefined : frame.errorEvent(failure, sent);
        if (told !== undefined) await give(encoder.encode(told));
        over(failure);
      } catch (error) {
        reader.cancel().catch(() => {}); // a stream that broke off rejects with its own error
        if (isOver) return;
        await give(events.take());
        isOver = true;
        if (!isExpected(error)) answering.log.error({ err: error }, "unexpected error in a stream behind hooks");
        const told = frame.refused(toRefusal(error), sent);
        if (told !== undefined) void client.write(encoder.encode(told));
      }
      client.close();
    },
    cancel() {
      reader.cancel().catch(() => {});
      over({ kind: "aborted" });
    },
  };
  return new ReadableStream(source);
}

/** A refusal, or an event of a backend that cannot be read. */
function isExpected(error: unknown): boolean {
  return error instanceof GatewayError || error instanceof DecodeError || error instanceof RangeError;
}

function toRefusal(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (!isExpected(error)) return new GatewayError(ERRORS.internal, "An unexpected error happened.", { cause: error });
  return new GatewayError(ERRORS.invalidBackendResponse, "The stream could not be read for a hook.", { cause: error });
}

/** One more round with the model, whose answer is read as a whole. */
async function askAgain(
  generate: Generate,
  context: RequestContext,
  request: ModelRequest,
  said: string,
  message: string,
): Promise<GenerationResult | undefined> {
  const format = formatOf(request.operation) as string;
  const value: JsonObject | undefined = withReply(format, request.body.value, said, message);
  if (value === undefined) return undefined;
  const { stream_options: _, ...whole } = value;
  const body = JsonBody.written(whole);
  const asked: ModelRequest = { ...request, body, stream: false, choices: 1, answered: undefined, routed: undefined };
  const frame = { errorEvent: () => "", ended() {}, refused: () => "" };
  const generated = await generate(context, asked, frame);
  const answer =
    generated.kind === "plain" ? generated.result : generated.kind === "replayed" ? generated.replay : undefined;
  const told = answer && parseObject(decoder.decode(answer.body));
  return told && decodeAnswerBody(format, told);
}
