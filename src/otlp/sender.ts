// Sends requests of OTLP over HTTP, one after the other: bounded in time, tried again as the specification of OTLP says, and
// logged only when the receiver goes away and when it is back.

import { isLocalHost } from "../access/hosts.ts";
import { abortableDelay } from "../lib/abortable-delay.ts";
import { backoffDelayMs } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import { readBounded } from "../lib/read-bounded.ts";
import type { Logger } from "../logging/logger.ts";
import { parseRetryAfter } from "../upstream/failure.ts";
import type { OtlpEncoding } from "./data.ts";

/** The last part of the URL's path, and the name in metrics. */
export type Signal = "traces" | "metrics";

export interface ExportDestination {
  /** Includes the path of the signal. */
  url: string;
  headers: Readonly<Record<string, string>>;
}

/** A request, with what it was written by. */
interface Outgoing {
  body: Uint8Array;
  encoding: OtlpEncoding;
}

interface SenderParts {
  signal: Signal;
  /** Asked before each try, because the configuration may change in between; undefined: nowhere any more. */
  destination(): ExportDestination | undefined;
  log: Pick<Logger, "info" | "warn">;
  /** After each request that was over, whatever became of it. */
  exported(isOk: boolean): void;
  clock: Clock;
  random?: () => number;
}

const EXPORT_TIMEOUT_MS = 10_000;
/** A request that was not accepted by then is given up: later ones matter more. */
const GIVE_UP_MS = 60_000;
const LAST_WAIT_MS = 1_000;
const BACKOFF = { baseDelayMs: 1_000, maxDelayMs: 16_000, multiplier: 2, jitter: true };
/** OTLP specification, "Retryable Response Codes". */
const RETRYABLE: readonly number[] = [429, 502, 503, 504];
const MAX_ANSWER_BYTES = 64 * 1024;
const MAX_MESSAGE_LENGTH = 200;

type ExportOutcome =
  | { isOk: true }
  | { isOk: false; reason: string; mayRetry: boolean; retryAfterMs?: number | undefined };

export type ExportSender = ReturnType<typeof createSender>;

export function createSender({ signal, destination, log, exported, clock, random = Math.random }: SenderParts) {
  let isUp = true;
  let hasToldPartly = false;
  let waiting = new AbortController();
  let isLast = false;

  function tell(outcome: ExportOutcome): void {
    exported(outcome.isOk);
    if (outcome.isOk === isUp) return;
    isUp = outcome.isOk;
    if (outcome.isOk) log.info({ signal }, "the OTLP receiver takes what is sent again");
    else log.warn({ signal, reason: outcome.reason }, "the OTLP receiver does not take what is sent");
  }

  function wake(): void {
    waiting.abort();
    waiting = new AbortController();
  }

  function readAnswer(answer: Uint8Array | undefined, encoding: OtlpEncoding): void {
    const partly = answer && encoding.partialSuccess(answer);
    if (partly === undefined || hasToldPartly) return;
    hasToldPartly = true;
    const told = partly.message.slice(0, MAX_MESSAGE_LENGTH);
    log.warn({ signal, rejected: partly.rejected, told }, "the OTLP receiver has refused a part of what was sent");
  }

  async function sendOnce(
    { body, isPacked, encoding }: { body: Uint8Array | undefined; isPacked: boolean; encoding: OtlpEncoding },
    { url, headers }: ExportDestination,
    stop: AbortSignal,
  ): Promise<ExportOutcome> {
    const packing = isPacked ? { "content-encoding": "gzip" } : {};
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": encoding.contentType, ...packing },
        body,
        redirect: "manual", // the headers would follow one
        timeout: false,
        signal: AbortSignal.any([stop, AbortSignal.timeout(EXPORT_TIMEOUT_MS)]),
      } as RequestInit);
      const { status } = response;
      const answer = await readBounded(response.body, MAX_ANSWER_BYTES);
      if (status >= 200 && status < 300) {
        readAnswer(answer, encoding);
        return { isOk: true };
      }
      const retryAfterMs = parseRetryAfter(response.headers.get("retry-after"), clock.wallTime());
      return { isOk: false, reason: `status_${status}`, mayRetry: RETRYABLE.includes(status), retryAfterMs };
    } catch (error) {
      return { isOk: false, reason: reasonOf(error), mayRetry: true };
    }
  }

  return {
    isUp: () => isUp,
    /** The configuration has changed: what waits is tried at once, and at the new place. */
    wake,
    /** The process ends: a receiver that does not answer gets less time than otherwise. */
    hurry(): void {
      isLast = true;
      wake();
    },
    /** Never rejects. False: it was not taken. `stop` ends all of it. */
    async send({ body, encoding }: Outgoing, stop: AbortSignal): Promise<boolean> {
      let packed: Uint8Array | undefined;
      const giveUpMs = clock.now() + GIVE_UP_MS;
      for (let failures = 1; ; failures++) {
        const place = destination();
        if (place === undefined || stop.aborted) return false;
        // Between two processes of a machine packing costs more than the bytes that it saves.
        const isPacked = !isLocalHost(new URL(place.url).host);
        if (isPacked) packed ??= await gzip(body);
        const outcome = await sendOnce({ body: isPacked ? packed : body, isPacked, encoding }, place, stop);
        if (stop.aborted && !outcome.isOk) return false;
        tell(outcome);
        if (outcome.isOk) return true;
        const waitMs = outcome.retryAfterMs ?? backoffDelayMs(BACKOFF, failures, random);
        if (!outcome.mayRetry || clock.now() + waitMs >= giveUpMs) return false;
        if (isLast && (failures > 1 || waitMs > LAST_WAIT_MS)) return false;
        await abortableDelay(waitMs, AbortSignal.any([stop, waiting.signal]));
      }
    },
  };
}

/** In another thread: what many requests have left would hold up those that run. */
function gzip(body: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  const zlib = process.getBuiltinModule("node:zlib");
  return new Promise((resolve, reject) => {
    zlib.gzip(body, { level: 1 }, (error, packed) =>
      error === null ? resolve(new Uint8Array(packed)) : reject(error),
    );
  });
}

/** Only codes and names: the runtime's messages may quote addresses and headers. */
function reasonOf(error: unknown): string {
  const { name, code } = error as { name?: unknown; code?: unknown };
  if (name === "TimeoutError") return "timeout";
  if (name === "AbortError") return "aborted";
  return typeof code === "string" ? code : "no_answer";
}
