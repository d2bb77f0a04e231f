// A line of a batch on its way to a backend: the batch of the backend's vendor may get it in place of the backend.

import type { Backend } from "../backends/backend.ts";
import type { BackendEntry } from "../backends/board.ts";
import type { BatchApi } from "../backends/kind.ts";
import type { KeptBudget } from "../batches/vendor/vendor-turn.ts";
import { NOTHING } from "../budgets/amounts.ts";
import type { Reservation } from "../budgets/budgets.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { withMembers } from "../lib/json-members.ts";
import { upstreamHeaders } from "../upstream/headers.ts";
import type { OutgoingRequest } from "../upstream/send.ts";
import type { RequestContext } from "./context.ts";
import type { ModelRequest, SideBySide } from "./model-request.ts";
import type { Held } from "./spending.ts";

/** The end of a request whose answer comes another time. No client gets it. */
class HandedOver extends GatewayError {
  constructor() {
    super({ status: 202, type: "handed_over", code: "handed_over" }, "A batch of the vendor has got the request.");
  }
}

/** What is set aside for a request that a vendor's batch has. */
export class KeptReservation implements KeptBudget {
  readonly reservation: Reservation;

  constructor(reservation: Reservation) {
    this.reservation = reservation;
  }

  release(): void {
    this.reservation.settle(NOTHING);
  }
}

/** Throws where a vendor's batch has taken the request; what `held` has set aside goes with it. */
export async function offerToVendor(
  { vendorTurn, record, settings }: RequestContext,
  { stream, body: { contentType } }: ModelRequest,
  { backend }: BackendEntry,
  outgoing: OutgoingRequest,
  held: Held | undefined,
  sideBySide: SideBySide | undefined,
): Promise<void> {
  const { batchApi } = backend.kind;
  if (vendorTurn === undefined || vendorTurn.answer !== undefined || batchApi === undefined) return;
  const { operation, model, answers } = outgoing;
  const path = batchApi.paths[operation]?.replace("{model}", () => encodeURIComponent(model));
  const isWhole = !stream && sideBySide === undefined && answers === undefined && contentType === undefined;
  const body = isWhole ? bodyFor(batchApi, backend, outgoing) : undefined;
  if (path === undefined || body === undefined) return;
  const all = upstreamHeaders(backend, outgoing, settings);
  const headers = Object.fromEntries(
    batchApi.headers.flatMap((name) => (all[name] === undefined ? [] : [[name, all[name]]])),
  );
  const { arms = [] } = record;
  const kept = held && new KeptReservation(held.reservation);
  if (!(await vendorTurn.offer({ backend: backend.name, model, path, headers, arms, body, kept }))) return;
  held?.keep();
  throw new HandedOver();
}

/** Undefined: no batch of the vendor can ask for the model. */
function bodyFor({ deploymentOf }: BatchApi, { settings }: Backend, { body, model }: OutgoingRequest) {
  if (deploymentOf === undefined) return body;
  const deployment = deploymentOf(model, settings);
  return deployment === undefined ? undefined : withMembers(body, { model: deployment });
}
