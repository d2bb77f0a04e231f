// What outlives every change of the configuration: what is remembered of answers and bodies, and the ways out to backends.

import { warnOfUntrustedProxy } from "../access/client-address.ts";
import type { Transport } from "../backends/transport.ts";
import { ByteAllowance } from "../lib/byte-allowance.ts";
import { createDeadlines } from "../lib/deadlines.ts";
import { createOwnIds } from "../lib/own-ids.ts";
import type { Logger } from "../logging/logger.ts";
import { createAnswerAverages } from "../pipeline/answer-averages.ts";
import { createSignatureMemory } from "../pipeline/bridge.ts";
import { Deduplicator } from "../pipeline/deduplicate.ts";
import type { SharedCall } from "../pipeline/generate.ts";
import { createRefusedMedia } from "../pipeline/media-fit.ts";
import { MAX_MIRRORED_BYTES } from "../pipeline/mirrors.ts";
import { createBodyDrain } from "../server/drain-body.ts";
import { createBodyReader } from "../server/read-body.ts";
import { createSender } from "../upstream/send.ts";

export type ProcessState = ReturnType<typeof createProcessState>;

export function createProcessState(transport: Transport, now: () => number, log: Pick<Logger, "warn">) {
  const deadlines = createDeadlines(now);
  return {
    deadlines,
    bodies: createBodyReader({ deadlines, now }),
    drain: createBodyDrain({ deadlines, now }),
    sender: createSender(transport, { deadlines, now }),
    signatures: createSignatureMemory(now),
    refusedMedia: createRefusedMedia(now),
    deduplicator: new Deduplicator<SharedCall>(now),
    averages: createAnswerAverages(),
    mirrored: new ByteAllowance(MAX_MIRRORED_BYTES),
    newOwnId: createOwnIds(Math.random),
    untrustedProxy: warnOfUntrustedProxy(log),
  };
}
