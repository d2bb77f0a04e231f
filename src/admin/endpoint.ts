// What every admin endpoint has in common: it stands behind the admin door, and its answers are not kept by anyone.

import type { ConfigStore } from "../config/store/store.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Administrator, Call, Endpoint } from "../server/endpoint.ts";
import type { ParameterOf } from "../server/path-pattern.ts";
import { unknownSection } from "./refusals.ts";
import { refuseOtherParameters } from "./request.ts";

/** `parameters` are the names of its query parameters; a request with any other is refused. */
export function adminRoute<Path extends string>(
  method: Endpoint["method"],
  path: Path,
  handle: (call: Call<ParameterOf<Path>>) => Response | Promise<Response>,
  parameters: readonly string[] = [],
): Endpoint {
  return {
    method,
    path,
    access: "admin",
    isWatched: method === "GET",
    handle(call) {
      refuseOtherParameters(call, parameters);
      return handle(call as Call<ParameterOf<Path>>);
    },
  };
}

/** With the version of the configuration as ETag, which If-Match takes. */
export function answer(
  { headers }: Call,
  body: unknown,
  options: { status?: number; version?: number } = {},
): Response {
  const { status = 200, version } = options;
  return Response.json(body, {
    status,
    headers: { ...headers, "Cache-Control": "no-store", ...(version !== undefined && { ETag: `"${version}"` }) },
  });
}

export function toTimestamp(atMs: number): string {
  return new Date(atMs).toISOString();
}

/** Who makes a change: for the history, and for what the change may bring in. */
export function authorOf({ administrator }: Call, source: string, description: string) {
  return { source, user: administrator?.name, description, elevated: administrator?.elevated === true };
}

/** Throws 403 for whoever may not see secrets. */
export function requireElevated({ administrator }: Call): Administrator {
  if (administrator?.elevated) return administrator;
  throw new GatewayError(
    ERRORS.forbidden,
    "include_sensitive needs elevated permission: an admin authentication (admin.auth.method), not the method none.",
    { param: "include_sensitive" },
  );
}

/** Names of sections from a request; throws 404 for the first that there is not. */
export function requireSections(names: readonly string[] | undefined, isKnown: (name: string) => boolean): void {
  const unknown = names?.find((name) => !isKnown(name));
  if (unknown !== undefined) throw unknownSection(unknown);
}

export type StoreOf<Members extends keyof ConfigStore> = Pick<ConfigStore, Members>;
