// /admin/oidc: a browser goes to the OpenID provider to sign in, and comes back to the page that was asked for.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { BoundedMap } from "../lib/bounded-map.ts";
import { text } from "../openapi/json-schema.ts";
import { type DescribedEndpoint, queryParameter } from "../openapi/operation.ts";
import type { Call, Guest } from "../server/endpoint.ts";
import { adminGroup } from "./endpoint.ts";
import { createOidcProvider, type Flow, type OidcSettings, type ProviderFailure, personOf } from "./oidc-provider.ts";
import type { AdminParts } from "./parts.ts";
import { queryOf } from "./query.ts";
import { cameEncrypted, cookieName, cookieValues, digestOf, isBrowserId, newBrowserId } from "./sessions.ts";

/** Why a browser comes back without a sign-in, as the page is told. */
export type SignInFailure = ProviderFailure | "over" | "no_role" | "address";

/** A browser that is at the provider. */
interface ProviderVisit extends Flow {
  /** Digest of its cookie: another browser cannot finish it. */
  browser: string;
  /** The page that was asked for. */
  to: string;
  oidc: OidcSettings;
}

const VISIT_MS = 10 * 60_000;
/** Visits under way; with more of them the oldest ends. */
const MAX_VISITS = 1_000;
const MAX_BYTES = 4 * 1024 * 1024;
const VISIT_BYTES = 1_024;
const LONGEST_PAGE = 2_000;

const COOKIE = "signalbox_sign_in";
const CALLBACK = "/admin/oidc/callback";

/** Pages of the dashboard, and nothing else. */
const OWN_PAGE = "^/dashboard(?:[/#][\\x21-\\x5b\\x5d-\\x7e]*)?$";

const endpoint = adminGroup("Sign-in", {});

export function oidcRoutes({
  settings,
  clock,
  log,
}: Pick<AdminParts, "settings" | "clock" | "log">): DescribedEndpoint[] {
  const provider = createOidcProvider(clock);
  const visits = new BoundedMap<ProviderVisit>({
    maxEntries: MAX_VISITS,
    maxBytes: MAX_BYTES,
    ttlMs: VISIT_MS,
    now: clock.now,
  });

  /** Throws 404 under any other method. */
  function required(): OidcSettings {
    const { method, oidc } = settings().admin.auth;
    if (method === "oidc" && oidc !== undefined) return oidc;
    throw new GatewayError(ERRORS.routeNotFound, "There is no OpenID provider: admin.auth.method is not oidc.");
  }

  function failed(call: Call, failure: SignInFailure, reason: string, to = "/dashboard"): Response {
    log.warn({ failure, reason, address: call.context.peerAddress() }, "a sign-in at the OpenID provider failed");
    const [page, hash] = to.split("#", 2);
    return goOn(call, fromCallback(`${page}?sign_in=${failure}${hash === undefined ? "" : `#${hash}`}`));
  }

  return [
    endpoint("GET /admin/oidc/sign-in", {
      id: "beginOidcSignIn",
      role: "guest",
      summary: "Send a browser to the OpenID provider",
      description: "Under admin.auth.method oidc; 404 under any other.",
      parameters: [
        queryParameter("to", "Page of the dashboard that the browser comes back to.", {
          ...text,
          pattern: OWN_PAGE,
          default: "/dashboard",
        }),
      ],
      answers: [{ status: 303, description: "To the provider, or back with what is wrong.", headers: ["Location"] }],
      errors: [404],
      async handle(call) {
        const to = readPage(queryOf(call).get("to") ?? "/dashboard");
        const oidc = required();
        const begun = await provider.begin(oidc, redirectUrlOf(call, oidc));
        if (!begun.ok) return failed(call, begun.failure, begun.reason, to);
        const { url, flow } = begun.value;
        // A browser that signs in in two tabs keeps its id.
        const id = cookieValues(call.request.headers, COOKIE).find(isBrowserId) ?? newBrowserId();
        visits.set(digestOf(flow.state), { ...flow, browser: digestOf(id), to, oidc }, VISIT_BYTES + to.length);
        return goOn(call, url, visitCookie(call, id));
      },
    }),
    endpoint("GET /admin/oidc/callback", {
      id: "finishOidcSignIn",
      role: "guest",
      summary: "Take a browser back from the OpenID provider",
      description: "Checks what the provider says, sets the cookie of the sign-in, and goes on to the page.",
      parameters: [
        queryParameter("state", "From the beginning of the sign-in; good for one answer."),
        queryParameter("code", "Of the provider."),
        queryParameter("error", "Of the provider, in place of a code."),
      ],
      takesOtherParameters: true,
      answers: [{ status: 303, description: "To the page that was asked for.", headers: ["Location"] }],
      errors: [404],
      async handle(call) {
        const oidc = required();
        const state = digestOf(queryOf(call).get("state") ?? "");
        const visit = visits.get(state);
        const browsers = cookieValues(call.request.headers, COOKIE).map(digestOf);
        if (visit === undefined || !browsers.includes(visit.browser)) {
          return failed(call, "over", "unknown state, or one of another browser");
        }
        visits.delete(state);
        if (visit.oidc !== oidc) return failed(call, "over", "the provider was changed meanwhile", visit.to);
        const found = await provider.finish(oidc, visit, new URL(call.request.url).search);
        if (!found.ok) return failed(call, found.failure, found.reason, visit.to);
        const { name, role } = personOf(found.value, oidc);
        if (role === undefined) return failed(call, "no_role", `no role for ${name}`, visit.to);
        // The settings may have changed while the provider was asked.
        if (required() !== oidc) return failed(call, "over", "the provider was changed meanwhile", visit.to);
        try {
          return goOn(call, fromCallback(visit.to), (call.guest as Guest).enter({ name, role }));
        } catch (thrown) {
          if (thrown instanceof GatewayError) return failed(call, "address", thrown.message, visit.to);
          throw thrown;
        }
      },
    }),
  ];
}

function readPage(page: string): string {
  if (page.length <= LONGEST_PAGE && new RegExp(OWN_PAGE).test(page)) return page;
  const message = "to must be a page of the dashboard, such as /dashboard#/backends";
  throw new GatewayError(ERRORS.invalidRequest, message, { param: "to" });
}

/** Relative to both endpoints, so that it also holds below a path of a proxy. */
function fromCallback(page: string): string {
  return `../..${page}`;
}

/** Proxies that end TLS say so. */
function redirectUrlOf({ request }: Call, { redirect_url }: OidcSettings): string {
  if (redirect_url !== undefined) return redirect_url;
  const url = `${cameEncrypted(request) ? "https" : "http"}://${request.headers.get("host")}${CALLBACK}`;
  if (URL.canParse(url)) return url;
  throw new GatewayError(ERRORS.invalidRequest, "The header Host is missing or no host; or set redirect_url.");
}

/** Lax: the browser has to send it when it comes from the provider. The cookie of the sign-in stays strict. */
function visitCookie({ request }: Call, id: string): string {
  const name = cookieName(COOKIE, request.headers.get("host"));
  const secure = cameEncrypted(request) ? "; Secure" : "";
  return `${name}=${id}; Path=/admin/oidc; Max-Age=${VISIT_MS / 1000}; HttpOnly; SameSite=Lax${secure}`;
}

function goOn({ headers }: Call, url: string, cookie?: string): Response {
  const response = new Response(null, {
    status: 303,
    headers: { ...headers, Location: url, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer" },
  });
  if (cookie !== undefined) response.headers.append("Set-Cookie", cookie);
  return response;
}
