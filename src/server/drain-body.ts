// What is left of a body when its request has been refused. A client that is still sending reads the refusal only if
// the rest is read: a connection that is closed with unread bytes is reset, and the refusal is lost.

import type { Deadline, Deadlines } from "../lib/deadlines.ts";

interface BodyDrainParts {
  deadlines: Deadlines;
  now(): number;
}

export type BodyDrain = ReturnType<typeof createBodyDrain>;

interface DrainLimits {
  maxBytes: number;
  maxMs: number;
}

const MEBIBYTE = 1024 * 1024;

/** The largest body that any endpoint takes which keeps bodies in memory. */
const OF_BODIES: DrainLimits = { maxBytes: 64 * MEBIBYTE, maxMs: 30_000 };

/** Many clients look at the answer only when they have sent all of their file, which is too large or not wanted at all. */
const OF_UPLOADS: DrainLimits = { maxBytes: 1024 * MEBIBYTE, maxMs: 300_000 };

/** A client that has stopped sending waits for the end of the answer. */
const MAX_QUIET_MS = 2_000;

/** The runtime itself discards the rest of a small body, and the connection can be used again. */
const LEFT_TO_RUNTIME_BYTES = 64 * 1024;

export function createBodyDrain({ deadlines, now }: BodyDrainParts) {
  async function drain(body: ReadableStream<Uint8Array>, { maxBytes, maxMs }: DrainLimits): Promise<void> {
    const reader = body.getReader();
    const overMs = now() + maxMs;
    const deadline: Deadline = { deadlineMs: now() + MAX_QUIET_MS, expire: () => void reader.cancel() };
    deadlines.add(deadline);
    try {
      for (let drainedBytes = 0; drainedBytes <= maxBytes; ) {
        const { done, value } = await reader.read();
        if (done) return;
        drainedBytes += value.length;
        deadline.deadlineMs = Math.min(now() + MAX_QUIET_MS, overMs);
      }
    } catch {
      // The client has left, with or without its answer.
    } finally {
      deadlines.remove(deadline);
    }
  }

  return {
    /** The refusal; to a client that may still be sending, one that ends when its body does, or has become too much. */
    behind(request: Request, refusal: Response, isUpload = false): Response {
      const { body } = request;
      if (body === null || !isUnread(request)) return refusal;
      const { status, headers } = refusal;
      headers.set("Connection", "close");
      const source: Bun.DirectUnderlyingSource<Uint8Array> = {
        type: "direct",
        async pull(client) {
          void client.write(await refusal.bytes());
          client.flush();
          await drain(body, isUpload ? OF_UPLOADS : OF_BODIES);
          client.close();
        },
      };
      return new Response(new ReadableStream(source), { status, headers });
    },
  };
}

/** A body that is being read, or was read to its end, is locked. */
function isUnread({ body, headers }: Request): boolean {
  if (body === null || body.locked) return false;
  const declared = headers.get("content-length");
  return declared === null || Number(declared) > LEFT_TO_RUNTIME_BYTES;
}
