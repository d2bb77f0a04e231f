// Credentials that expire: a timer renews them ahead of their end, so that no request waits for it.

import { unlessAborted } from "../../lib/abortable-delay.ts";
import { type BackendCredential, CredentialError, type CredentialHeaders, type CredentialTools } from "./credential.ts";

export interface Expiring {
  /** Unix milliseconds. */
  expiresAtMs: number;
}

export interface Grant extends Expiring {
  headers: CredentialHeaders;
}

/** What is valid at the moment. */
interface Renewed<Kept> {
  /** A promise where it has to be waited for; it rejects with CredentialError. */
  current(): Kept | Promise<Kept>;
  /** It was not accepted: renewed at once, unless that was done a moment ago. */
  refused(): void;
  stop(): void;
}

type RenewalTools = Pick<CredentialTools, "backend" | "clock" | "log">;

/** A credential of headers that are the same for every request. @param get - as for keepRenewed() */
export function createRenewed(get: (signal: AbortSignal) => Promise<Grant>, tools: RenewalTools): BackendCredential {
  const grants = keepRenewed(get, tools);
  return {
    authorize() {
      const grant = grants.current();
      return grant instanceof Promise ? grant.then(({ headers }) => headers) : grant.headers;
    },
    refused: grants.refused,
    stop: grants.stop,
  };
}

/** Part of the remaining time after which a grant is renewed: of an hour, 12 minutes are left for failures. */
const RENEWED_AFTER = 0.8;
/** Issuers that hand out the same token until its end would be asked without a pause otherwise. */
const SHORTEST_PAUSE_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;
const LONGEST_PAUSE_MS = 86_400_000; // a timer can wait for 24 days at most
const TIME_LIMIT_MS = 30_000;
/** A backend that refuses tokens for another reason has them renewed no more often than this. */
const LEAST_AGE_MS = 60_000;

/**
 * Begins at once.
 * @param get - asks for a new grant; throws CredentialError, and ends when its signal aborts
 */
export function keepRenewed<Kept extends Expiring>(
  get: (signal: AbortSignal) => Promise<Kept>,
  { backend, clock, log }: RenewalTools,
): Renewed<Kept> {
  const stopping = new AbortController();
  let grant: Kept | undefined;
  let problem: CredentialError | undefined;
  let failures = 0;
  let renewedAtMs = clock.now();
  let timer: Timer | undefined;
  let running: Promise<void> | undefined;

  async function ask(): Promise<void> {
    clearTimeout(timer);
    try {
      const limit = AbortSignal.any([stopping.signal, AbortSignal.timeout(TIME_LIMIT_MS)]);
      const next = await unlessAborted(get(limit), limit);
      if (next.expiresAtMs <= clock.wallTime()) {
        throw new CredentialError("the access token has expired already; is the clock of this machine right?");
      }
      if (problem !== undefined) log.info({ backend }, `backend ${backend} has a credential again`);
      grant = next;
      renewedAtMs = clock.now();
      problem = undefined;
      failures = 0;
    } catch (error) {
      if (stopping.signal.aborted) return;
      const known = problem?.message;
      problem = error instanceof CredentialError ? error : new CredentialError("the access token could not be got");
      failures++;
      // One line per reason: the same one every few seconds would bury all others.
      if (problem.message !== known) {
        log.warn({ backend, reason: problem.message }, `no new credential for backend ${backend}: ${problem.message}`);
      }
    }
    if (stopping.signal.aborted) return;
    timer = setTimeout(() => void renew(), pauseMs());
  }

  function pauseMs(): number {
    if (grant === undefined || problem !== undefined) {
      return Math.min(LONGEST_RETRY_MS, SHORTEST_PAUSE_MS * 2 ** (failures - 1));
    }
    const afterMs = (grant.expiresAtMs - clock.wallTime()) * RENEWED_AFTER;
    return Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, afterMs));
  }

  function renew(): Promise<void> {
    running ??= ask().finally(() => {
      running = undefined;
    });
    return running;
  }

  function grantNow(): Kept | undefined {
    return grant !== undefined && clock.wallTime() < grant.expiresAtMs ? grant : undefined;
  }

  void renew();

  return {
    current() {
      const valid = grantNow();
      if (valid !== undefined) return valid;
      // The timer asks again. Requests wait only where nothing is known: at the start, and after the machine has slept.
      if (problem !== undefined) return Promise.reject(problem);
      return renew().then(() => grantNow() ?? Promise.reject(problem ?? new CredentialError("the gateway stops")));
    },
    refused() {
      const isOld = clock.now() - renewedAtMs >= LEAST_AGE_MS;
      if (problem === undefined && isOld && !stopping.signal.aborted) void renew();
    },
    stop() {
      stopping.abort();
      clearTimeout(timer);
    },
  };
}
