// The endpoint that Prometheus scrapes: the metrics as text, behind basic credentials of its own.

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Settings } from "../config/sections/registry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { EXPOSITION_TYPE } from "../metrics/registry.ts";
import type { DescribedEndpoint } from "../openapi/operation.ts";
import type { Endpoint } from "../server/endpoint.ts";
import type { AdminParts } from "./parts.ts";

const CHALLENGE = { "WWW-Authenticate": 'Basic realm="Signalbox metrics", charset="UTF-8"' };

export function metricsRoutes({ registry, settings }: Pick<AdminParts, "registry" | "settings">): DescribedEndpoint[] {
  const isRight = createCheck();

  async function handle({ headers }: Parameters<Endpoint["handle"]>[0]): Promise<Response> {
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
      if (isRight(settings().metrics.auth, headers.get("authorization"))) return;
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
      answers: [{ status: 200, description: "The metrics.", type: EXPOSITION_TYPE.split(";")[0] as string }],
      errors: [401, 404, 500],
      handle,
    },
  ];
}

/** How long a check takes tells neither the length of the credentials nor where they differ. */
function createCheck(): (auth: Settings["metrics"]["auth"], authorization: string | null) => boolean {
  const secret = randomBytes(32);
  const digest = (text: string): Buffer => createHmac("sha256", secret).update(text).digest();
  return ({ username, password }, authorization) => {
    const encoded = /^basic\s+(\S+)\s*$/i.exec(authorization ?? "")?.[1];
    // Nobody has credentials that are not configured.
    if (encoded === undefined || username === undefined || password === undefined) return false;
    const presented = Buffer.from(encoded, "base64").toString("utf8");
    // A username has no colon: both as one text are right exactly when each is.
    return timingSafeEqual(digest(presented), digest(`${username}:${password}`));
  };
}
