// Calls in flight that another worker makes: this one's clients share them as they share its own.

import type { BackendEntry } from "../backends/board.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { SharedAnswer } from "../pipeline/deduplicate.ts";
import type { FlightsElsewhere, SharedCall } from "../pipeline/generate.ts";
import { type Decision, RateLimitError } from "../rate-limit/decision.ts";
import type { UpstreamFailure } from "../upstream/failure.ts";
import type { ByteSink } from "../upstream/relay.ts";
import type { Channel } from "./channel.ts";
import { type Frame, FrameReader, type ToldError, type ToldHead, type ToldOutcome } from "./flight-wire.ts";
import type { PrimaryDesk } from "./messages.ts";

interface RemoteFlightsParts {
  channel: Channel<PrimaryDesk>;
  /** Of this worker. */
  socket: string;
  secret: string;
  /** What is known here of a backend. */
  entryOf(name: string): BackendEntry | undefined;
  now(): number;
}

/** Frames as they come. */
type Frames = AsyncGenerator<Frame, void>;

const PROCESS_LOST: UpstreamFailure = { kind: "reset", message: "The process that made the shared call has ended." };

type RemoteFlights = FlightsElsewhere & {
  /** The key of a call that is made here. */
  keyOf(digest: string): string | undefined;
};

export function createRemoteFlights(parts: RemoteFlightsParts): RemoteFlights {
  const { channel, socket, secret } = parts;
  /** Keys of the calls that are made here, by their digests; with how many calls there are of each, some of them abandoned. */
  const led = new Map<string, { key: string; calls: number }>();

  function digestOf(key: string): string {
    return new Bun.CryptoHasher("sha256").update(key).digest("hex");
  }

  /** Returns whether no other call of the digest is made here. */
  function release(digest: string): boolean {
    const call = led.get(digest);
    if (call === undefined || --call.calls > 0) return false;
    return led.delete(digest);
  }

  async function joinAt(
    place: string,
    digest: string,
    signal: AbortSignal,
  ): Promise<SharedAnswer<SharedCall> | undefined> {
    try {
      const response = await fetch(`http://worker/${secret}/${digest}`, { unix: place, signal } as RequestInit);
      if (response.status !== 200 || response.body === null) return undefined;
      const frames = framesOf(response.body);
      const first = await frames.next();
      if (first.done || first.value.kind !== "head") return undefined;
      return sharedAnswer(first.value.head, frames, parts);
    } catch {
      return undefined; // it has ended, or all followers here have left
    }
  }

  return {
    async join(key, ttlMs, signal) {
      const digest = digestOf(key);
      led.set(digest, { key, calls: (led.get(digest)?.calls ?? 0) + 1 });
      let isNotAt: string | undefined;
      // The second time the call is made here, wherever that one has gone.
      for (let turn = 0; turn < 2; turn++) {
        const place = (await channel.call("lead", [digest, socket, ttlMs, isNotAt])) ?? socket;
        if (place === socket || signal.aborted) return undefined;
        const answer = await joinAt(place, digest, signal);
        if (answer !== undefined) release(digest);
        if (answer !== undefined || signal.aborted) return answer;
        isNotAt = place;
      }
      return undefined;
    },
    landed(key) {
      const digest = digestOf(key);
      if (release(digest)) channel.tell("landed", digest, socket);
    },
    keyOf: (digest) => led.get(digest)?.key,
  };
}

async function* framesOf(body: ReadableStream<Uint8Array>): Frames {
  const reader = new FrameReader();
  for await (const bytes of body) yield* reader.push(bytes);
}

function sharedAnswer(
  { attempts, dropped, storyId, outcome }: ToldHead,
  frames: Frames,
  parts: RemoteFlightsParts,
): SharedAnswer<SharedCall> | undefined {
  const record: SharedCall["record"] = { attempts, dropped: dropped as string[] | undefined, id: storyId };
  const result = resultOf(outcome, parts);
  if (result === undefined) return undefined;
  const head: SharedCall = { record, outcome: result, isElsewhere: true };
  if (outcome.kind !== "stream") return { head };
  return { head, feed: (sink) => void feed(frames, sink, record) };
}

async function feed(frames: Frames, sink: ByteSink, record: SharedCall["record"]): Promise<void> {
  try {
    for await (const frame of frames) {
      if (frame.kind === "piece") {
        const written = sink.write(frame.bytes);
        if (typeof written !== "number") await written;
      } else if (frame.kind === "end") {
        record.attempts = frame.end.attempts;
        if (frame.end.failure === undefined) sink.close();
        else sink.fail(frame.end.failure, undefined);
        return;
      }
    }
  } catch {
    // Without an end, whatever the reason.
  }
  sink.fail(PROCESS_LOST, undefined);
}

/** Undefined where it is not known here who has answered. */
function resultOf(told: ToldOutcome, { entryOf, now }: RemoteFlightsParts): SharedCall["outcome"] | undefined {
  if (told.kind === "refused") return { kind: "refused", error: errorOf(told.error, told.decision) };
  const { backendName, model, reasons } = told;
  const entry = entryOf(backendName);
  if (entry === undefined) return undefined;
  const answer = { entry, model, reasons };
  switch (told.kind) {
    case "plain": {
      const { kind, body, contentType, headers, itemIds, isKept } = told;
      return { ...answer, kind, body, contentType, headers, itemIds, isKept };
    }
    case "stream": {
      const { kind, headers, contentType, runningMs } = told;
      return { ...answer, kind, headers, contentType, live: { exchange: { startedAtMs: now() - runningMs } } };
    }
    case "failed": {
      const { kind, failure, retryAfterMs } = told;
      return { ...answer, kind, failure, retryAfterMs };
    }
  }
}

function errorOf({ message, definition, param, details, headers }: ToldError, decision: unknown): Error {
  if (decision !== undefined) return new RateLimitError(decision as Decision);
  if (definition === undefined) return new Error(message);
  return new GatewayError(definition, message, {
    ...(param !== undefined && { param }),
    ...(details !== undefined && { details }),
    ...(headers !== undefined && { headers }),
  });
}
