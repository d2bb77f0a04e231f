// Decides which requests are recorded, and follows those: what the client has sent and what it gets, without making it wait. What
// is kept of them is put together when the answer is over.

import type { Caller } from "../access/caller.ts";
import { ownerOf } from "../access/owner.ts";
import type { Settings } from "../config/sections/registry.ts";
import { compileGlob } from "../lib/glob.ts";
import type { RequestBody } from "../lib/request-body.ts";
import { compileCondition, type RouteSubject } from "../model-routes/conditions.ts";
import type { RequestRecord } from "../stats/request-record.ts";
import type { Incomplete, RecordedBody, RecordingFacts } from "./recording.ts";

type RecordingSettings = Settings["recording"];

/** With the value "no" a client keeps its request from being recorded. */
export const RECORD_HEADER = "X-Signalbox-Record";

/** The request as the recorder looks at it. */
export interface AskedRequest {
  record: RequestRecord;
  caller: Caller | undefined;
  clientHeaders: Headers;
  path: string;
  /** As the client sent it. */
  body: RequestBody;
  /** Asked for where conditions look at more than names. */
  subject(): RouteSubject;
}

export interface Recorder {
  /** Undefined: it is not recorded. @param look - called for those on which the lot falls, so that others cost nothing */
  begin(look: () => AskedRequest): RecordedExchange | undefined;
}

/** A request that is over, before it is sealed. */
export interface FinishedRecording {
  facts: RecordingFacts;
  path: string;
  request: RecordedBody;
  answer: RecordedBody;
  /** As it was configured when the request came. */
  redacts: boolean;
}

interface ExchangeRecorderParts {
  settings: RecordingSettings;
  /** Memory of what is not kept yet, of all requests. */
  allowance: { take(bytes: number): boolean; giveBack(bytes: number): void };
  random(): number;
  wallTime(): number;
  /** Clock milliseconds, as the records have them. */
  now(): number;
  costOf(record: RequestRecord): number;
  /** Takes over the memory of it. */
  finished(recording: FinishedRecording, heldBytes: number): void;
  /** No memory was left for a request that was to be recorded. */
  dropped(): void;
}

export function createRecorder(parts: ExchangeRecorderParts): Recorder {
  const { settings, allowance, random, dropped } = parts;
  const { share } = settings;
  const conditions = settings.match.map(compileMatch);
  const keepsRequest = settings.what.includes("request");
  return {
    begin(look) {
      if (share < 1 && random() >= share) return undefined;
      const asked = look();
      if (asked.clientHeaders.get(RECORD_HEADER)?.trim().toLowerCase() === "no") return undefined;
      if (conditions.length > 0 && !conditions.some((holds) => holds(asked))) return undefined;
      const content = keepsRequest ? asked.body.bytes() : undefined;
      if (!allowance.take(content?.length ?? 0)) {
        dropped();
        return undefined;
      }
      return new RecordedExchange(parts, asked, content);
    },
  };
}

function compileMatch(entry: RecordingSettings["match"][number]): (asked: AskedRequest) => boolean {
  const { model, route, ...rest } = entry;
  const models = model?.map(compileGlob);
  const routes = route?.map(compileGlob);
  const condition = Object.keys(rest).some((name) => name !== "time_zone") ? compileCondition(rest) : undefined;
  return ({ record, subject }) => {
    if (models !== undefined && !models.some((matches) => matches(record.model))) return false;
    const { route: asked } = record;
    if (routes !== undefined && (asked === undefined || !routes.some((matches) => matches(asked)))) return false;
    return condition === undefined || condition.holds(subject());
  };
}

const NOTHING = new Uint8Array(0);

/** Finished when both the body of the answer and the request itself are over, in either order. */
export class RecordedExchange {
  readonly #parts: ExchangeRecorderParts;
  readonly #asked: Omit<AskedRequest, "body" | "subject">;
  readonly #owner: string;
  readonly #request: RecordedBody;
  readonly #pieces: Uint8Array[] = [];
  /** What of the allowance it holds. */
  #heldBytes: number;
  #answerBytes = 0;
  #keptBytes = 0;
  #incomplete: Incomplete | null = null;
  #contentType = "";
  #isAnswered = false;
  #isForgotten = false;
  #facts: RecordingFacts | undefined;

  constructor(
    parts: ExchangeRecorderParts,
    { body, subject: _, ...asked }: AskedRequest,
    content: Uint8Array | undefined,
  ) {
    this.#parts = parts;
    this.#asked = asked;
    this.#owner = ownerOf(asked.caller);
    this.#heldBytes = content?.length ?? 0;
    const { max_body_bytes } = parts.settings;
    const isCut = content !== undefined && content.length > max_body_bytes;
    this.#request = {
      contentType: body.contentType ?? "application/json",
      bytes: content?.length ?? 0,
      incomplete: content === undefined ? "not_recorded" : isCut ? "cut" : null,
      // A cut one must not keep the whole body in memory.
      content: content === undefined ? NOTHING : isCut ? content.slice(0, max_body_bytes) : content,
    };
  }

  /** @param isStream - its body goes on after the handler returned */
  answered(response: Response, isStream: boolean): Response {
    this.#contentType = response.headers.get("content-type") ?? "";
    if (!this.#parts.settings.what.includes("answer")) {
      this.#incomplete = "not_recorded";
      this.#bodyIsOver();
    } else if (!isStream) {
      // The body is not looked at: as a stream it would cost more than all else here.
      void this.#noteWhole(response.clone());
    } else if (response.body === null) {
      this.#bodyIsOver();
    } else {
      return new Response(this.#watched(response.body), response);
    }
    return response;
  }

  async #noteWhole(copy: Pick<Response, "bytes">): Promise<void> {
    try {
      this.#add(await copy.bytes());
    } catch {
      // The client meets the same trouble.
    }
    this.#bodyIsOver();
  }

  /** The request is over, and its record still has its usage. */
  over(record: RequestRecord): void {
    const { caller } = this.#asked;
    const { now, wallTime, costOf } = this.#parts;
    this.#facts = {
      id: record.id,
      owner: this.#owner,
      atMs: Math.round(wallTime() - (now() - record.startedAtMs)),
      keyId: caller?.keyId ?? null,
      userId: record.user ?? null,
      organizationId: caller?.organizationId ?? null,
      model: record.shownModel,
      answeredBy: record.answeredBy ?? null,
      route: record.route ?? null,
      arm: record.arm ?? null,
      backend: record.backend ?? null,
      operation: record.operation,
      stream: record.stream,
      status: record.status ?? 0,
      outcome: record.outcome ?? "failed",
      durationMs: record.durationMs ?? 0,
      firstByteMs: record.firstByteMs ?? null,
      inputTokens: record.promptTokens ?? null,
      outputTokens: record.completionTokens ?? null,
      cost: record.cache === "HIT" || record.isShared ? 0 : costOf(record),
      dataset: null,
    };
    this.#finish();
  }

  /** Nothing of it is kept. */
  forget(): void {
    this.#parts.allowance.giveBack(this.#heldBytes);
    this.#heldBytes = 0;
    this.#pieces.length = 0;
    this.#isForgotten = true;
  }

  /** The same stream; each piece is noted as it goes out, and taken from the source only when the client wants it. */
  #watched(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = body.getReader();
    // The source may use the memory of a piece again.
    const noted = (piece: Uint8Array) => this.#add(piece.slice());
    const isOver = () => this.#bodyIsOver();
    const source: Bun.DirectUnderlyingSource<Uint8Array> = {
      type: "direct",
      async pull(client) {
        try {
          for (;;) {
            const { done, value } = await reader.read();
            if (done) break;
            const taken = client.write(value);
            noted(value);
            if (typeof taken !== "number") await taken;
            void client.flush();
          }
          isOver();
          client.close();
        } catch (error) {
          isOver();
          reader.cancel().catch(() => {}); // a stream that broke off rejects with its own error
          client.close(error as Error);
        }
      },
      cancel() {
        isOver();
        void reader.cancel();
      },
    };
    // The pages of the dashboard are checked with the types of browsers, which know no direct streams.
    return new ReadableStream(source as never);
  }

  #add(piece: Uint8Array): void {
    this.#answerBytes += piece.length;
    if (this.#incomplete !== null || this.#isAnswered || this.#isForgotten) return;
    const room = this.#parts.settings.max_body_bytes - this.#keptBytes;
    const kept = piece.length > room ? piece.slice(0, room) : piece;
    if (kept.length < piece.length) this.#incomplete = "cut";
    if (!this.#parts.allowance.take(kept.length)) {
      this.#incomplete = "cut";
      return;
    }
    this.#heldBytes += kept.length;
    this.#keptBytes += kept.length;
    this.#pieces.push(kept);
  }

  #bodyIsOver(): void {
    this.#isAnswered = true;
    this.#finish();
  }

  #finish(): void {
    const facts = this.#facts;
    if (!this.#isAnswered || facts === undefined) return;
    this.#facts = undefined; // once
    const answer: RecordedBody = {
      contentType: this.#contentType,
      bytes: this.#answerBytes,
      incomplete: this.#incomplete,
      content: this.#pieces.length === 1 ? (this.#pieces[0] as Uint8Array) : Buffer.concat(this.#pieces),
    };
    const { finished, settings } = this.#parts;
    const recording = { facts, path: this.#asked.path, request: this.#request, answer, redacts: settings.redact };
    finished(recording, this.#heldBytes);
  }
}
