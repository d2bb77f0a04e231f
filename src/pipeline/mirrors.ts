// Copies of requests for the mirror of a route: the model is asked as any other, and its answer is measured and thrown away. The client's
// request never waits for it.

import { formatOf, isFree } from "../backends/operations.ts";
import type { RouteSettings } from "../config/sections/routes.ts";
import type { ByteAllowance } from "../lib/byte-allowance.ts";
import type { Clock } from "../lib/clock.ts";
import type { RequestBody } from "../lib/request-body.ts";
import type { Logger } from "../logging/logger.ts";
import { mirrorName } from "../model-routes/arm-book.ts";
import { keptAnswers } from "../protocols/registry.ts";
import { RequestRecord } from "../stats/request-record.ts";
import { failureLabel } from "../upstream/failure.ts";
import { relayInto } from "../upstream/relay.ts";
import type { RequestContext } from "./context.ts";
import type { Forwarder } from "./forward.ts";
import type { Generate } from "./generate.ts";
import { ASKING_BODY, type ModelRequest, NO_BACKENDS, onlyBackend } from "./model-request.ts";
import type { RequestReporter } from "./observe.ts";
import { lightestOf } from "./queue-class.ts";

interface MirrorParts {
  forwarder: Pick<Forwarder, "forward">;
  reporter: Pick<RequestReporter, "begun" | "finished">;
  /** For the bodies of copies under way. */
  memory: ByteAllowance;
  random(): number;
  clock: Clock;
  log: Pick<Logger, "error" | "debug">;
  newOwnId(): string;
}

/** Copies under way hold at most so much; beyond it none are made. */
export const MAX_MIRRORED_BYTES = 64 * 1024 * 1024;

/** A small body holds this much all the same: it bounds how many copies are under way. */
const LEAST_BYTES = 256 * 1024;

/** Makes a generator that sends copies of routed requests to the mirrors of their routes. */
export function withMirrors(generate: Generate, parts: MirrorParts): Generate {
  const { memory, random, log } = parts;
  return (context, request, frame) => {
    const generated = generate(context, request, frame);
    const mirror = request.routed?.route.settings.mirror;
    if (mirror === undefined || request.routed === undefined || random() >= mirror.share) return generated;
    const { route } = request.routed;
    const body = bodyOfCopy(request, request.routed.body, mirror);
    if (body === undefined) return generated;
    const bytes = Math.max(LEAST_BYTES, request.routed.body.bytes().length);
    // It begins behind the first byte of the client's answer, and not at all where there is none, or where another call has made it.
    const begin = ({ kind }: { kind: string }) => {
      if (kind === "replayed" || context.record.isShared) return;
      if (!memory.take(bytes)) {
        log.debug({ request_id: context.id }, "a copy for a mirror was left out: too many are under way");
        return;
      }
      setImmediate(() => {
        void send(parts, context, copyFor(request, mirror, body), { name: route.settings.name, mirror }).finally(() =>
          memory.giveBack(bytes),
        );
      });
    };
    generated.then(begin, () => {});
    return generated;
  };
}

type Mirror = NonNullable<RouteSettings["mirror"]>;

/** Undefined where there is to be no copy: what a vendor keeps can be asked of that vendor alone, and what is done is done once. */
function bodyOfCopy(
  { namesVendorState, foreignFile, operation, asking }: ModelRequest,
  body: RequestBody,
  { model }: Mirror,
): RequestBody | undefined {
  if (namesVendorState === true || foreignFile !== undefined || isFree(operation)) return undefined;
  const kept = keptAnswers(asking.client?.name ?? formatOf(operation));
  const changes = kept?.keepingNothing?.(body.value);
  if (kept?.hasSideEffect({ ...body.value, ...changes }) === true) return undefined;
  return body.with({ ...changes, model });
}

function copyFor(request: ModelRequest, { model, backend }: Mirror, body: RequestBody): ModelRequest {
  return {
    ...request,
    model,
    askedModel: model,
    body,
    asking: ASKING_BODY,
    onlyAt: onlyBackend(backend),
    prefer: undefined,
    routed: undefined,
    namedAs: undefined,
    answered: undefined,
    avoid: NO_BACKENDS,
  };
}

async function send(
  { forwarder, reporter, clock, log, newOwnId }: MirrorParts,
  of: RequestContext,
  request: ModelRequest,
  { name, mirror }: { name: string; mirror: Mirror },
): Promise<void> {
  const record = new RequestRecord(newOwnId(), of.id, clock.now(), clock.now);
  const { signal } = new AbortController();
  const context: RequestContext = {
    ...of,
    client: { signal },
    caller: undefined,
    vendorTurn: undefined,
    queueClass: lightestOf(of.settings.admission.queue.classes),
    record,
    hooks: of.hooks?.forCopy(record),
    heldBytes: 0,
    spans: undefined,
  };
  record.operation = request.operation;
  record.model = request.model;
  record.stream = request.stream;
  record.isRead = true;
  record.isCopy = true;
  reporter.begun(context);
  const arm = { route: name, arm: mirrorName(mirror) };
  record.askArms([arm]);
  record.routeReason = `${arm.arm}: this is a copy for its mirror, whose answer no client gets`;
  let status = 200;
  try {
    const result = await forwarder.forward(context, request, true);
    if (result.kind === "failed") {
      status = result.failure.kind === "status" ? result.failure.status : 502;
      record.lastFailure = failureLabel(result.failure);
      record.isOutage = true;
    } else {
      record.firstByteMs = record.sinceStartMs;
      if (result.kind === "stream") await drained(result.live, record);
    }
  } catch (error) {
    status = 503;
    record.isOutage = true;
    record.lastFailure ??= "not_sent";
    log.debug({ request_id: of.id, err: error }, "a copy for a mirror could not be sent");
  }
  reporter.finished(context, status, record.sinceStartMs);
  record.settle();
}

/** Reads a stream to its end; nothing of it is kept. */
function drained(live: Parameters<typeof relayInto>[0], record: RequestRecord): Promise<void> {
  const sink = { write: ({ length }: Uint8Array) => length, close() {}, fail() {} };
  return relayInto(live, sink, {
    takeover: undefined,
    tap: undefined,
    finished(failure) {
      if (failure !== undefined) record.streamFailure = failureLabel(failure);
    },
  }).done;
}
