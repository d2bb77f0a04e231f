// Who may come in: callers by their key, administrators by their door, everyone within the limits.

import { type AccessControl, keyInQuery, presentedKey } from "../access/api-keys.ts";
import type { ClientAddressReader } from "../access/client-address.ts";
import type { Settings } from "../config/sections/registry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Clock } from "../lib/clock.ts";
import type { RequestContext } from "../pipeline/context.ts";
import { type Decision, RateLimitError, writeRateLimitHeaders } from "../rate-limit/decision.ts";
import type { LimitQuery } from "../rate-limit/limit-rules.ts";
import type { Limiter } from "../rate-limit/limiter.ts";
import type { AdminDoor, Administrator, Answering, Guest } from "./endpoint.ts";
import type { LaterRequest } from "./later-request.ts";
import type { Server } from "./listener.ts";
import { writeQuotaHeaders } from "./quota-headers.ts";

export interface EntranceParts {
  access: AccessControl;
  /** Without one, endpoints with the access "admin" are closed. */
  adminDoor: AdminDoor | undefined;
  limiter: Limiter;
  clientAddresses: ClientAddressReader;
  settings: Settings;
  clock: Pick<Clock, "wallTime">;
}

/** A request at the entrance; who it is gets written into it. */
interface Visitor {
  request: Request;
  server: Server;
  context: RequestContext;
  endpoint: Pick<Answering, "operation" | "takesKeyInQuery"> | undefined;
  /** Headers of the answer, for the limits. */
  headers: Record<string, string>;
  administrator: Administrator | undefined;
  guest: Guest | undefined;
  /** Undefined: who asks is who its credentials say. */
  later?: LaterRequest | undefined;
}

type MaybeRefused = RateLimitError | undefined;

export type Entrance = ReturnType<typeof createEntrance>;

export function createEntrance({ access, adminDoor, limiter, clientAddresses, settings, clock }: EntranceParts) {
  /** The client behind trusted proxies. */
  function clientAddress(server: Server, request: Request): string | undefined {
    return clientAddresses.read(server.requestIP(request)?.address, request.headers.get("x-forwarded-for"));
  }

  function admitAdministrator(visitor: Visitor, { isForGuests, role = "admin" }: Answering): void {
    const { server, request } = visitor;
    if (adminDoor === undefined) throw new GatewayError(ERRORS.forbidden, "The admin API is closed.");
    const peer = server.requestIP(request)?.address;
    const addresses = { peer: peer === "" ? undefined : peer, client: clientAddress(server, request) };
    if (isForGuests) visitor.guest = adminDoor.receive(request, addresses);
    else adminDoor.admit(visitor, addresses, role);
  }

  /** @param caller - undefined: of the client alone */
  function limitQuery(
    { request, context, endpoint }: Pick<Visitor, "request" | "context" | "endpoint">,
    caller: RequestContext["caller"],
  ): LimitQuery {
    const key = limiter.hasBypassKeys ? (presentedKey(request.headers) ?? queryKey(request, endpoint)) : undefined;
    return { clientAddress: context.peerAddress(), keyId: caller?.keyId, perMinute: caller?.requestsPerMinute, key };
  }

  /** Looks at none while the client has no token: else every guess would be answered. */
  function checkCredentials({ check }: NonNullable<Answering["credentials"]>, visitor: Visitor): void | Promise<void> {
    function checkUnless(refusal: Decision | undefined): void {
      if (refusal !== undefined) throw new RateLimitError(refusal);
      check(visitor.request.headers);
    }
    const refusal = limiter.limitsRequests ? limiter.guessRefusal(limitQuery(visitor, undefined)) : undefined;
    return refusal instanceof Promise ? refusal.then(checkUnless) : checkUnless(refusal);
  }

  /** Takes a token of every limit that concerns the caller. */
  function checkLimits(visitor: Visitor): void | Promise<void> {
    const decision = limiter.take(limitQuery(visitor, visitor.context.caller));
    if (decision instanceof Promise) return decision.then((taken) => tell(taken, visitor));
    tell(decision, visitor);
  }

  function limited(visitor: Visitor): void | Promise<void> {
    const isLimited = limiter.limitsRequests || visitor.context.caller?.requestsPerMinute !== undefined;
    if (isLimited) return checkLimits(visitor);
  }

  function tell(decision: Decision | undefined, visitor: Visitor): void {
    if (decision === undefined) return;
    const { limit, remaining, resetAtMs } = decision;
    const { record } = visitor.context;
    record.allowance = { limit, remaining, resetAtMs };
    if (!decision.allowed) throw new RateLimitError(decision);
    // An endpoint that asks a model tells it with what budgets leave.
    const operation = visitor.endpoint?.operation;
    if (operation === undefined) writeQuotaHeaders(record, operation, clock.wallTime(), visitor.headers);
    if (settings.rate_limiting.headers_on_success) writeRateLimitHeaders(decision, visitor.headers);
  }

  return {
    clientAddress,
    /**
     * Throws 401, 403 or 429, or rejects with it where a token is checked or limits are asked for elsewhere.
     * @param pageRefusal - why a web page that asks may not
     */
    admit(endpoint: Answering, visitor: Visitor, pageRefusal: string | undefined): void | Promise<void> {
      if (endpoint.access === "admin") admitAdministrator(visitor, endpoint);
      else if (endpoint.access !== "open") {
        if (pageRefusal !== undefined) throw new GatewayError(ERRORS.forbidden, pageRefusal);
        const { request, context, later } = visitor;
        if (later !== undefined && endpoint.access !== "any_key") {
          access.authorizeLater(later.creator, endpoint.access, context);
          // It was let in when its request was handed over.
          return later.vendorTurn?.answer === undefined ? limited(visitor) : undefined;
        }
        const inQuery = queryKey(request, endpoint);
        const authorizing = access.authorize(request.headers, endpoint.access, context, inQuery);
        return authorizing === undefined ? limited(visitor) : authorizing.then(() => limited(visitor));
      } else if (endpoint.credentials?.areWanted()) return checkCredentials(endpoint.credentials, visitor);
    },
    /** Wrong credentials cost the client a token; the 429 when it has none left. */
    guessed(visitor: Pick<Visitor, "request" | "context" | "endpoint">): MaybeRefused | Promise<MaybeRefused> {
      if (!limiter.limitsRequests) return undefined;
      const refusal = limiter.takeForGuess(limitQuery(visitor, undefined));
      return refusal instanceof Promise ? refusal.then(refusalOf) : refusalOf(refusal);
    },
  };
}

function queryKey({ url }: Request, endpoint: Visitor["endpoint"]): string | undefined {
  return endpoint?.takesKeyInQuery === true ? keyInQuery(url) : undefined;
}

function refusalOf(decision: Decision | undefined): MaybeRefused {
  return decision && new RateLimitError(decision);
}
