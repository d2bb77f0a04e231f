// The dashboard: GET /dashboard is a page without data, which anybody may have who may sign in; what it shows it asks the
// admin API for. Its files stand below, under names that change with their content.

import type { AdminParts } from "../admin/parts.ts";
import { prefersHtml } from "../api/welcome.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { type DescribedEndpoint, pathParameter } from "../openapi/operation.ts";
import type { Call, Guest } from "../server/endpoint.ts";
import type { Asset, Assets } from "./asset.ts";
import { loadAssets } from "./assets.ts";
import { renderOwnPage, renderPage, renderRefusal, SECURITY_HEADERS } from "./page.ts";

const FOREVER = "public, max-age=31536000, immutable";

interface DashboardParts extends Pick<AdminParts, "settings"> {
  env: Readonly<Record<string, string | undefined>>;
}

export function dashboardRoutes({ settings, env }: DashboardParts): DescribedEndpoint[] {
  let loading: Promise<Assets> | undefined;

  /** Those that could not be made are tried again by the next who asks. */
  function assets(): Promise<Assets> {
    loading ??= loadAssets(env).catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  }

  /** Without credentials the admin API answers this machine only, and so does the page. */
  function refusalOf({ guest }: Call): GatewayError | undefined {
    if (settings().admin.auth.method !== "none") return undefined;
    try {
      (guest as Guest).signIn({});
      return undefined;
    } catch (thrown) {
      if (thrown instanceof GatewayError) return thrown;
      throw thrown;
    }
  }

  return [
    {
      method: "GET",
      path: "/dashboard",
      id: "getDashboard",
      tag: "Observation",
      access: "admin",
      isForGuests: true,
      isWatched: true,
      summary: "The dashboard, a page for browsers",
      description: "It holds no data: it signs in and asks the admin API.",
      answers: [{ status: 200, description: "The page.", types: ["text/html"] }],
      errors: [403, 500],
      async handle(call) {
        const refusal = refusalOf(call);
        if (refusal === undefined) return htmlAnswer(call, renderPage(await assets()), 200);
        if (!prefersHtml(call.request.headers.get("accept") ?? "")) throw refusal;
        return htmlAnswer(call, renderRefusal(refusal.message), refusal.status);
      },
    },
    {
      method: "GET",
      path: "/dashboard/me",
      id: "getOwnPage",
      tag: "Observation",
      access: "open",
      isWatched: true,
      summary: "The page for holders of keys",
      description: "It holds no data: it asks the public API with the key that is entered there.",
      answers: [{ status: 200, description: "The page.", types: ["text/html"] }],
      errors: [500],
      handle: async (call) => htmlAnswer(call, renderOwnPage(await assets()), 200),
    },
    {
      method: "GET",
      path: "/dashboard/{asset}",
      id: "getDashboardFile",
      tag: "Observation",
      access: "admin",
      isForGuests: true,
      isWatched: true,
      summary: "A file of the dashboard",
      parameters: [pathParameter("asset", "Its name, from the page.")],
      answers: [{ status: 200, description: "The file.", types: ["text/javascript", "text/css"] }],
      errors: [403, 404, 500],
      async handle(call) {
        const { ownScript, theme, style } = await assets();
        // Those of the page for holders of keys are open as that is.
        const refusal = [ownScript, theme, style].includes(call.parameters.asset ?? "") ? undefined : refusalOf(call);
        if (refusal !== undefined) throw refusal;
        return fileAnswer(call, await assets());
      },
    },
  ];
}

function htmlAnswer({ headers }: Call, text: string, status: number): Response {
  return new Response(text, {
    status,
    headers: {
      ...headers,
      ...SECURITY_HEADERS,
      "Content-Type": "text/html; charset=utf-8",
      "Cache-Control": "no-store",
    },
  });
}

function fileAnswer({ request, parameters, headers }: Call, { files }: Assets): Response {
  const asset = files.get(parameters.asset ?? "");
  if (asset === undefined) {
    throw new GatewayError(ERRORS.routeNotFound, "There is no such file of the dashboard: load GET /dashboard again.");
  }
  const encoding = encodingFor(request.headers.get("accept-encoding") ?? "");
  return new Response(asset[encoding], {
    headers: {
      ...headers,
      ...SECURITY_HEADERS,
      "Content-Type": asset.type,
      "Cache-Control": FOREVER,
      Vary: headers.Vary === undefined ? "Accept-Encoding" : `Accept-Encoding, ${headers.Vary}`,
      ...(encoding !== "plain" && { "Content-Encoding": encoding }),
    },
  });
}

/** The smallest of those that a browser takes (RFC 9110, section 12.5.3). */
export function encodingFor(accepted: string): Exclude<keyof Asset, "type"> {
  const taken = new Set<string>();
  for (const entry of accepted.toLowerCase().split(",")) {
    const [name = "", ...parameters] = entry.split(";").map((part) => part.trim());
    const isRefused = parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter));
    if (!isRefused) taken.add(name);
  }
  if (taken.has("br")) return "br";
  return taken.has("gzip") ? "gzip" : "plain";
}
