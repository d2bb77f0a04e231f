// What outlives every change of the configuration: what is remembered of answers and bodies, and the ways out to backends.

import type { Transport } from "../backends/transport.ts";
import type { Clock } from "../lib/clock.ts";
import { createDeadlines } from "../lib/deadlines.ts";
import { createOwnIds } from "../lib/own-ids.ts";
import type { Logger } from "../logging/logger.ts";
import { createSignatureMemory } from "../pipeline/bridge.ts";
import { Deduplicator } from "../pipeline/deduplicate.ts";
import type { SharedCall } from "../pipeline/generate.ts";
import { createRefusedMedia } from "../pipeline/media-fit.ts";
import type { ResponseStore } from "../pipeline/response-store.ts";
import { createBodyDrain } from "../server/drain-body.ts";
import { createBodyReader } from "../server/read-body.ts";
import { createSender } from "../upstream/send.ts";

export type Lasting = ReturnType<typeof createLasting>;

/** `boundTo`: the addresses that are open; a change of them takes a restart. */
export function createLasting(
  { now }: Clock,
  log: Logger,
  transport: Transport,
  responses: ResponseStore,
  boundTo: readonly string[],
) {
  const deadlines = createDeadlines(now);
  return {
    deadlines,
    boundTo,
    bodies: createBodyReader({ deadlines, now }),
    drain: createBodyDrain({ deadlines, now }),
    sender: createSender(transport, { deadlines, now }),
    responses,
    signatures: createSignatureMemory(now),
    refusedMedia: createRefusedMedia(now),
    deduplicator: new Deduplicator<SharedCall>(now),
    untrustedProxy: warnOnce(log),
    newOwnId: createOwnIds(Math.random),
  };
}

/** All clients of a proxy that is not named count as one, and whoever runs it should know; once is enough. */
function warnOnce(log: Logger): (peer: string | undefined) => void {
  let hasWarned = false;
  return (peer) => {
    if (hasWarned) return;
    hasWarned = true;
    const message =
      "X-Forwarded-For of a peer that server.trusted_proxies does not name is ignored: its clients count as one";
    log.warn({ address: peer }, message);
  };
}
