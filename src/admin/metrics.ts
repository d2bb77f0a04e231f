// The endpoint that Prometheus scrapes: the metrics as text, behind basic credentials of its own.

import { basicCredential, createDigest } from "../access/credentials.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { EXPOSITION_TYPE } from "../metrics/registry.ts";
import type { DescribedEndpoint } from "../openapi/operation.ts";
import type { Endpoint } from "../server/endpoint.ts";
import type { AdminParts } from "./parts.ts";

const CHALLENGE = { "WWW-Authenticate": 'Basic realm="Signalbox metrics", charset="UTF-8"' };

export function metricsRoutes({ registry, settings }: Pick<AdminParts, "registry" | "settings">): DescribedEndpoint[] {
  const digest = createDigest();

  async function handle({ headers }: Parameters<Endpoint["handle"]>[0]) {
    if (!settings().metrics.enabled || registry === undefined) {
      throw new GatewayError(
        ERRORS.routeNotFound,
        "Metrics are switched off. Set metrics.enabled to true to have them.",
      );
    }
    const text = await registry.expose();
    return new Response(text, {
      headers: { ...headers, "Content-Type": EXPOSITION_TYPE, "Cache-Control": "no-store" },
    });
  }

  const credentials: Endpoint["credentials"] = {
    // Switched off, it is 404 for everyone.
    areWanted: () => settings().metrics.enabled && registry !== undefined && settings().metrics.auth.enabled,
    check(headers) {
      const { username, password } = settings().metrics.auth;
      const presented = basicCredential(headers);
      // Credentials that are not configured let no caller in.
      const isPossible = presented !== undefined && username !== undefined && password !== undefined;
      if (isPossible && crypto.timingSafeEqual(digest(presented), digest(`${username}:${password}`))) return;
      const message = "The metrics need credentials: send the user and the password of metrics.auth as Basic.";
      throw new GatewayError(ERRORS.invalidApiKey, message, { headers: CHALLENGE });
    },
  };
  // The path is read once: a change of it takes a restart.
  return [
    {
      method: "GET",
      path: settings().metrics.endpoint,
      usualPath: "/metrics",
      access: "open",
      isWatched: true,
      credentials,
      id: "getMetrics",
      tag: "Observation",
      summary: "Metrics in the text format of Prometheus",
      description: "The path is that of metrics.endpoint.",
      answers: [{ status: 200, description: "The metrics.", types: [EXPOSITION_TYPE.split(";")[0] as string] }],
      errors: [401, 404, 500],
      handle,
    },
  ];
}
