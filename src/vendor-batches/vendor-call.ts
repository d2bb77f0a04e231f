// Requests to the batch API of a vendor: answers read whole within a bound or part by part, and what it means that one failed.

import type { Backend } from "../backends/backend.ts";
import { callDeadline, controlHeaders, failureText, statusText } from "../backends/control-request.ts";
import type { BackendAnswer, Transport } from "../backends/transport.ts";
import { readWholeBody } from "../backends/whole-body.ts";
import { VendorRefusal, VendorTrouble } from "../batches/vendor/vendor-api.ts";
import { isObject, type JsonObject, parseJson } from "../lib/json.ts";
import { type JsonPick, JsonPicks } from "../lib/json-picks.ts";
import { LineReader } from "../lib/line-reader.ts";
import { backendWords } from "../upstream/backend-words.ts";
import { parseRetryAfter } from "../upstream/failure.ts";

/** Until an answer is complete; an upload takes longer. */
const TIMEOUT_MS = 60_000;
const UPLOAD_TIMEOUT_MS = 600_000;
/** Between two pieces of results. */
const SILENCE_MS = 120_000;
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
/** Of a line or a value of results. */
const MAX_PART_BYTES = 64 * 1024 * 1024;
/** Statuses by which a vendor says nothing about the batch. */
const OF_THE_MOMENT: ReadonlySet<number> = new Set([408, 409, 425, 429]);

interface VendorAsk {
  method: "GET" | "POST" | "DELETE";
  path: string;
  headers?: Readonly<Record<string, string>>;
  body?: Uint8Array | string;
  signal: AbortSignal;
}

export type VendorCalls = ReturnType<typeof createVendorCalls>;

export function createVendorCalls(transport: Transport, wallTime: () => number) {
  function begin(backend: Backend, { method, path, headers, body }: VendorAsk) {
    const all = { ...controlHeaders(backend, body !== undefined), ...headers };
    return transport(backend, path, { method, headers: all, body });
  }

  async function refusal(backend: Backend, answer: BackendAnswer): Promise<Error> {
    const { status } = answer;
    const body = await readWholeBody(answer, MAX_ANSWER_BYTES);
    const retryAfterMs = parseRetryAfter(answer.header("retry-after"), wallTime());
    const words = body && backendWords({ kind: "status", status, body, retryAfterMs, headers: {} }, backend);
    const said = `${statusText(backend, status)}${words === undefined ? "" : `: ${words}`}`;
    if (status < 500 && !OF_THE_MOMENT.has(status)) return new VendorRefusal(said, status === 401 || status === 403);
    return new VendorTrouble(said, retryAfterMs);
  }

  /**
   * What a reader makes of the pieces of an answer with the status 200.
   * @param partsOf - gets each piece, and undefined at the end
   */
  async function* parts<Part>(
    backend: Backend,
    asked: VendorAsk,
    partsOf: (piece: Uint8Array | undefined) => Iterable<Part>,
  ): AsyncGenerator<Part, void> {
    const { signal } = asked;
    signal.throwIfAborted();
    const call = begin(backend, asked);
    let deadline = callDeadline(SILENCE_MS, signal);
    deadline.watch(call);
    try {
      const answer = await call.answer;
      if (answer.status !== 200) throw await refusal(backend, answer);
      for await (const piece of piecesOf(answer)) {
        deadline.close(); // what is done with the parts may take its time
        yield* partsOf(piece);
        deadline = callDeadline(SILENCE_MS, signal);
        deadline.watch(call);
      }
      yield* partsOf(undefined);
    } catch (error) {
      throw trouble(error, signal, deadline.expired);
    } finally {
      deadline.close();
      call.abort();
    }
  }

  return {
    /** The JSON object of an answer with the status 200. */
    async json(backend: Backend, asked: VendorAsk): Promise<JsonObject> {
      const { signal, body } = asked;
      signal.throwIfAborted();
      const deadline = callDeadline(body instanceof Uint8Array ? UPLOAD_TIMEOUT_MS : TIMEOUT_MS, signal);
      try {
        const call = deadline.watch(begin(backend, asked));
        const answer = await call.answer;
        if (answer.status !== 200) throw await refusal(backend, answer);
        const bytes = await readWholeBody(answer, MAX_ANSWER_BYTES);
        const told = bytes && parseJson(new TextDecoder().decode(bytes));
        if (isObject(told)) return told;
        throw new VendorTrouble("the answer is not a JSON object");
      } catch (error) {
        throw trouble(error, signal, deadline.expired);
      } finally {
        deadline.close();
      }
    },

    /** The lines of an answer with the status 200, each valid until the next is asked for. */
    lines(backend: Backend, asked: VendorAsk): AsyncGenerator<Uint8Array, void> {
      const lines = new LineReader(MAX_PART_BYTES);
      return parts(backend, asked, function* (piece) {
        if (piece !== undefined) {
          for (const line of lines.read(piece)) if (line !== "too-long") yield line;
          return;
        }
        const last = lines.end();
        if (last !== undefined) yield last;
      });
    },

    /**
     * The values at these places of an answer with the status 200, which may be as long as it likes.
     * @param wanted - as JsonPicks reads it
     */
    picks(backend: Backend, asked: VendorAsk, wanted: readonly string[]): AsyncGenerator<JsonPick, void> {
      const picks = new JsonPicks(wanted, MAX_PART_BYTES);
      return parts(backend, asked, function* (piece) {
        if (piece !== undefined) yield* picks.read(piece);
        else if (!picks.isWhole) throw new VendorTrouble("the answer is not a JSON object, or ends too early");
      });
    },
  };
}

function trouble(error: unknown, signal: AbortSignal, isLate: boolean): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof VendorRefusal || error instanceof VendorTrouble) return error;
  return new VendorTrouble(isLate ? "the vendor did not answer in time" : failureText(error));
}

/** Piece by piece: the vendor is held back while one is worked on. */
async function* piecesOf(answer: BackendAnswer): AsyncGenerator<Uint8Array, void> {
  const pieces: Uint8Array[] = [];
  let isOver = false;
  let failure: { error: unknown } | undefined;
  let wake: (() => void) | undefined;
  answer.read({
    received(piece) {
      pieces.push(piece);
      answer.pause();
      wake?.();
    },
    ended() {
      isOver = true;
      wake?.();
    },
    failed(error) {
      failure = { error };
      wake?.();
    },
  });
  for (;;) {
    const piece = pieces.shift();
    if (piece !== undefined) yield piece;
    else if (failure !== undefined) throw failure.error;
    else if (isOver) return;
    else {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      answer.resume();
      if (pieces.length === 0 && !isOver && failure === undefined) await woken;
    }
  }
}
