// What a client is told whose request cannot have a slot in time: the 429, with the time after which another try is worth it.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Shed, ShedReason } from "./admission.ts";

const REASONS: ReadonlyMap<ShedReason, string> = new Map([
  ["queue_full", "the queue in front of its backends is full"],
  ["too_late", "its turn would come later than it may wait"],
  ["waited_too_long", "it has waited as long as it may"],
  ["owner_gone", "the process that keeps the order is away"],
]);

export class QueueError extends GatewayError {
  readonly shed: Shed;

  constructor(shed: Shed, model: string, className: string) {
    const { reason, retryAfterMs, waiting } = shed;
    const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
    super(
      ERRORS.queueRefused,
      `The model '${model}' has too much to do: ${REASONS.get(reason)} (class ${className}, ${waiting} waiting). Try again in ${seconds} s.`,
      {
        headers: { "Retry-After": String(seconds) },
        details: { reason, class: className, waiting, retry_after: seconds },
      },
    );
    this.shed = shed;
  }
}
