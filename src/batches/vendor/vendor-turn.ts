// A line on its way through the gateway whose vendor may answer it by a batch: on the first way it is handed over where it
// would have been sent, on the second way the vendor's answer takes the place of the exchange with the backend.

import type { RouteArm } from "../../stats/request-record.ts";

/** What a budget has set aside for the line. */
export interface KeptBudget {
  /** The vendor does not answer the line. */
  release(): void;
}

/** Which requests can stand in one batch of a vendor. */
export interface VendorAddress {
  /** Name of the backend. */
  backend: string;
  /** As the backend is asked for it. */
  model: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  /** Targets of routes that have led to the model. */
  arms: readonly RouteArm[];
}

/** A request as the backend would get it. */
export interface VendorRequest extends VendorAddress {
  body: Uint8Array;
  kept: KeptBudget | undefined;
}

export interface VendorAnswer extends Pick<VendorAddress, "backend" | "model" | "arms"> {
  /** The vendor's id of its batch. */
  batch: string;
  status: number;
  body: Uint8Array;
  kept: KeptBudget | undefined;
}

export interface VendorTurn {
  /** Undefined on the first way. */
  readonly answer: VendorAnswer | undefined;
  /** False: the backend is asked now. Rejects where the request cannot be kept. */
  offer(request: VendorRequest): Promise<boolean>;
  /** The request was taken in place of the backend. */
  isHandedOver: boolean;
  /** The answer was read. */
  isUsed: boolean;
}
