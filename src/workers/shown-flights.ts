// The calls that a worker makes for others as well: over a unix socket they join as one more client.

import { GatewayError } from "../errors/gateway-error.ts";
import type { Deduplicator, Joined } from "../pipeline/deduplicate.ts";
import type { SharedCall } from "../pipeline/generate.ts";
import { RateLimitError } from "../rate-limit/decision.ts";
import type { Server } from "../server/listener.ts";
import type { UpstreamFailure } from "../upstream/failure.ts";
import { encodeFrame, type ToldEnd, type ToldError, type ToldHead, type ToldOutcome } from "./flight-wire.ts";

interface ShownFlightsParts {
  deduplicator: Deduplicator<SharedCall>;
  /** The key of a call that is made here, by its digest. */
  keyOf(digest: string): string | undefined;
  now(): number;
}

/** The call of a request: its digest stands in its path, behind the secret. */
const FLIGHT_PATH = /^\/([0-9a-f]{64})\/([0-9a-f]{64})$/;

export function createShownFlights({ deduplicator, keyOf, now }: ShownFlightsParts, secret: string) {
  return async (request: Request, server: Server): Promise<Response> => {
    server.timeout(request, 0);
    const [, presented = "", digest = ""] = FLIGHT_PATH.exec(new URL(request.url).pathname) ?? [];
    if (!isSame(presented, secret)) return new Response(null, { status: 403 });
    const key = keyOf(digest);
    if (key === undefined || !deduplicator.isInFlight(key)) return new Response(null, { status: 404 });
    let ended: UpstreamFailure | undefined;
    const joined = await deduplicator.join({
      key,
      ttlMs: 0,
      signal: request.signal,
      start: () => Promise.reject(new Error("it was in flight")),
      // The errors of the clients there are written there.
      lastWords: () => new Uint8Array(0),
      finished(failure) {
        ended = failure;
      },
    });
    if (joined === undefined) return new Response(null, { status: 404 });
    return new Response(told(joined, now, () => ended));
  };
}

function isSame(presented: string, secret: string): boolean {
  return presented.length === secret.length && crypto.timingSafeEqual(Buffer.from(presented), Buffer.from(secret));
}

/** Head, pieces, end. */
function told(
  { head, body }: Joined<SharedCall>,
  now: () => number,
  failure: () => UpstreamFailure | undefined,
): ReadableStream<Uint8Array> {
  const end = (): ToldEnd => ({ failure: failure(), attempts: head.record.attempts });
  const reader = body?.getReader();
  const source: Bun.DirectUnderlyingSource<Uint8Array> = {
    type: "direct",
    async pull(sink) {
      sink.write(encodeFrame({ kind: "head", head: headOf(head, now()) }));
      await sink.flush();
      for (;;) {
        const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
        if (done) break;
        const written = sink.write(encodeFrame({ kind: "piece", bytes: value as Uint8Array }));
        if (typeof written !== "number") await written;
        await sink.flush();
      }
      sink.write(encodeFrame({ kind: "end", end: end() }));
      sink.close();
    },
    cancel() {
      void reader?.cancel();
    },
  };
  return new ReadableStream(source);
}

function headOf({ record, outcome }: SharedCall, nowMs: number): ToldHead {
  const { attempts, dropped, id } = record;
  return { attempts, dropped, storyId: id, outcome: outcomeOf(outcome, nowMs) };
}

function outcomeOf(outcome: SharedCall["outcome"], nowMs: number): ToldOutcome {
  if (outcome.kind === "refused") {
    const decision = outcome.error instanceof RateLimitError ? outcome.error.decision : undefined;
    return { kind: "refused", error: errorOf(outcome.error), decision };
  }
  const { entry, model, reasons } = outcome;
  const answer = { backendName: entry.backend.name, model, reasons };
  switch (outcome.kind) {
    case "plain": {
      const { kind, body, contentType, headers, itemIds, isKept = false } = outcome;
      return { ...answer, kind, body, contentType, headers, itemIds, isKept };
    }
    case "stream": {
      const { kind, headers, contentType, live } = outcome;
      return { ...answer, kind, headers, contentType, runningMs: nowMs - live.exchange.startedAtMs };
    }
    case "failed": {
      const { kind, failure, retryAfterMs } = outcome;
      return { ...answer, kind, failure, retryAfterMs };
    }
  }
}

function errorOf(error: unknown): ToldError {
  if (!(error instanceof GatewayError)) return { message: error instanceof Error ? error.message : String(error) };
  const { message, status, type, code, param, details, headers } = error;
  return { message, definition: { status, type, code }, param, details, headers };
}
