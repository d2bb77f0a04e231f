// What stands around the parts that answer requests: in a gateway its own, in a worker replicas of what the primary owns.

import type { KeyIdentity } from "../access/key-identity.ts";
import type { StoredKeys } from "../access/stored-keys.ts";
import type { Admission } from "../admission/admission.ts";
import type { Budgets } from "../budgets/budgets.ts";
import type { BudgetEvents } from "../budgets/budgets-part.ts";
import type { Rules } from "../budgets/rules.ts";
import type { Part } from "../config/compile/part.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { ServingFleet } from "../fleet/fleet.ts";
import type { KvTeller } from "../kv-index/kv-teller.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import type { RecordingResult, UploadResult } from "../metrics/gateway-events.ts";
import type { ArmBook } from "../model-routes/arm-book.ts";
import type { DescribedEndpoint } from "../openapi/operation.ts";
import type { FlightsElsewhere } from "../pipeline/generate.ts";
import type { RequestReporter } from "../pipeline/observe.ts";
import type { ResponseStore } from "../pipeline/response-store.ts";
import type { Limiter } from "../rate-limit/limiter.ts";
import type { RecordingSink } from "../recording/recording.ts";
import type { AskAgain } from "../recording/replay-one.ts";
import type { ResponseCache } from "../response-cache/cache.ts";
import type { AdminDoor } from "../server/endpoint.ts";
import type { HandlerParts } from "../server/handler.ts";
import type { RouteTable } from "../server/route-table.ts";
import type { WayToBackends } from "../upstream/way-to-backends.ts";

/** Parts that a gateway owns; a worker has its own, or replicas of its primary's. */
export interface Surroundings {
  snapshot: ConfigSnapshot;
  home: string | undefined;
  clock: Clock;
  log: Logger;
  identify: KeyIdentity;
  /** Keys that were made through the admin API. */
  storedKeys: StoredKeys;
  adminDoor: AdminDoor;
  /** Undefined where no request of the admin API is recorded. */
  audit?: { answered: NonNullable<HandlerParts["answered"]> };
  wayToBackends: WayToBackends;
  fleet: ServingFleet;
  /** The part that the fleet follows. */
  backends: Part;
  /** Of the process that keeps the configuration, for all others. */
  keeperParts: readonly Part[];
  reporter: RequestReporter;
  /** Statistics, metrics and traces of requests; the first part to follow, the last to stop. */
  telemetry: Part;
  happened: {
    /** Called when a limit has refused a request. */
    rateLimited(scope: string): void;
    fileUploaded(result: UploadResult): void;
    recorded(result: RecordingResult, times?: number): void;
    redisUnanswered(use: string): void;
    /** A request had a slot after a wait, in milliseconds. */
    queueWaited(className: string, durationMs: number): void;
    queueShed(className: string, reason: string): void;
    hookCalled(hook: string, event: string, verdict: string, durationMs: number, times: number): void;
    hookRestarted(hook: string, cause: string): void;
  } & BudgetEvents;
  responses: ResponseStore;
  metrics: readonly DescribedEndpoint[];
  /** What callers ask about their own requests, which the process with the counts answers. */
  ownUsage: readonly DescribedEndpoint[];
  /** What callers ask about their batches, which the process that runs them answers. */
  batches: readonly DescribedEndpoint[];
  /** Made once, whatever the settings become, and when it is first asked for: few gateways are asked at all. */
  adminTable(): Promise<RouteTable<DescribedEndpoint>>;
  /** Other processes with this one's index of KV caches; `follows`: another one follows the events of the engines. */
  kvPeers?: { teller: KvTeller; follows: boolean } | undefined;
  /** Under which other processes name the answers that this one has in memory. */
  cacheSeed?: number | undefined;
  /** The process that has the buckets of the limits, the budgets and the answers in memory; undefined: this one has. */
  owner?:
    | {
        limiter(settings: ConfigSnapshot["settings"]): Limiter;
        budgets(rules: Rules): Budgets;
        answers: ResponseCache;
        admission: Admission;
        recordings: RecordingSink;
      }
    | undefined;
  /** Takes the scores of targets of routes that are kept from earlier; undefined in a worker. */
  ratedBefore?: ArmBook["ratedBefore"] | undefined;
  /** Asks this gateway a request of a replay; undefined in a worker. */
  askAgain?: AskAgain | undefined;
  /** A backend has become full, or has slots again; for processes that ask this one. */
  roomChanged?: ((backend: string, isFull: boolean) => void) | undefined;
  /** Calls that other processes make; undefined: there are none. */
  flights?: FlightsElsewhere | undefined;
}
