// Which methods there are, and what may be asked when.

import { isPresent, type JsonObject } from "../lib/json.ts";
import type { RpcCall, RpcHandler } from "./connection.ts";
import { optionalObject, readParams } from "./params.ts";
import { invalidParams, RPC, RpcError, shortened } from "./rpc-error.ts";
import { type ClientAbilities, decodeAbilities, encodeInitialized, NO_ABILITIES } from "./wire/capabilities.ts";

/** Throws RpcError. What it gives is the result; nothing is {}. */
export type RpcMethod = (params: JsonObject, call: RpcCall) => unknown;

/** The methods that a client may call by a notification; any other would act and report nothing. */
const NOTIFICATIONS: ReadonlySet<string> = new Set(["session/cancel", "mcp/message", "mcp/disconnect"]);

interface Dispatch {
  handle: RpcHandler;
  /** The abilities that the client has declared. */
  abilities(): ClientAbilities;
}

/** @param methods - those that may be called after initialize */
export function createDispatch(methods: () => Readonly<Record<string, RpcMethod>>): Dispatch {
  let abilities: ClientAbilities | undefined;

  function initialize(params: JsonObject): JsonObject {
    const { protocolVersion } = params;
    if (!Number.isSafeInteger(protocolVersion)) {
      const state = isPresent(protocolVersion) ? "must be a whole number" : "is missing";
      throw invalidParams(`protocolVersion ${state}: send 1.`);
    }
    optionalObject(params, "clientInfo");
    const decoded = decodeAbilities(params);
    abilities ??= decoded; // asked again, it says the same again
    return encodeInitialized();
  }

  /** All are let in: the user who started this process may use it. */
  const open: Readonly<Record<string, RpcMethod>> = { authenticate: () => ({}), logout: () => ({}) };

  return {
    abilities: () => abilities ?? NO_ABILITIES,
    handle(method, given, call) {
      if (!call.isRequest && !NOTIFICATIONS.has(method)) return undefined;
      if (method === "initialize") return initialize(readParams(given));
      if (abilities === undefined) throw notInitialized();
      const all = Object.hasOwn(open, method) ? open : methods();
      const run = Object.hasOwn(all, method) ? all[method] : undefined;
      if (run === undefined) throw notFound(method);
      return run(readParams(given), call);
    },
  };
}

function notInitialized(): RpcError {
  return new RpcError(RPC.notInitialized, "Call initialize first.", { reason: "not_initialized" });
}

function notFound(method: string): RpcError {
  return new RpcError(RPC.methodNotFound, `There is no method "${shortened(method)}".`, { reason: "method_not_found" });
}
