// The OpenID provider of admin.auth.oidc: where people sign in, and who they are by its word.

import type { Configuration, CustomFetch } from "openid-client";
import { claimAt, listOf, textOf } from "../access/jwt/claims.ts";
import type { Settings } from "../config/sections/registry.ts";
import { ROLES, type Role } from "../config/values/roles.ts";
import type { Clock } from "../lib/clock.ts";
import { readBounded } from "../lib/read-bounded.ts";

export type OidcSettings = NonNullable<Settings["admin"]["auth"]["oidc"]>;

/** What stays here while a person is at the provider. */
export interface Flow {
  state: string;
  nonce: string;
  /** RFC 7636: only its digest goes through the browser. */
  verifier: string;
  redirectUrl: string;
}

export type ProviderFailure = "unreachable" | "denied" | "invalid";

type ProviderResult<Value> = { ok: true; value: Value } | { ok: false; failure: ProviderFailure; reason: string };

export type Claims = Readonly<Record<string, unknown>>;

const ANSWER_LIMIT_SECONDS = 10;
const MAX_ANSWER_BYTES = 1024 * 1024;
/** The addresses and keys of the provider are looked up again after so long; after a failure, sooner. */
const REFRESH_MS = 3_600_000;
const RETRY_MS = 2_000;

interface ProviderDiscovery {
  oidc: OidcSettings;
  fromMs: number;
  keptMs: number;
  result: Promise<ProviderResult<Configuration>>;
}

/** Asked only when a person signs in: a gateway starts without its provider. */
export function createOidcProvider(clock: Pick<Clock, "now">) {
  let discovery: ProviderDiscovery | undefined;

  function discovered(oidc: OidcSettings): Promise<ProviderResult<Configuration>> {
    const isFresh = discovery?.oidc === oidc && clock.now() - discovery.fromMs < discovery.keptMs;
    if (discovery !== undefined && isFresh) return discovery.result;
    const next: ProviderDiscovery = { oidc, fromMs: clock.now(), keptMs: REFRESH_MS, result: discover(oidc) };
    discovery = next;
    void next.result.then(({ ok }) => {
      if (!ok) [next.fromMs, next.keptMs] = [clock.now(), RETRY_MS];
    });
    return next.result;
  }

  return {
    /** Where the browser goes. */
    async begin(oidc: OidcSettings, redirectUrl: string): Promise<ProviderResult<{ url: string; flow: Flow }>> {
      const found = await discovered(oidc);
      if (!found.ok) return found;
      const client = await import("openid-client");
      const verifier = client.randomPKCECodeVerifier();
      const flow = { state: client.randomState(), nonce: client.randomNonce(), verifier, redirectUrl };
      const url = client.buildAuthorizationUrl(found.value, {
        redirect_uri: redirectUrl,
        scope: oidc.scopes.join(" "),
        state: flow.state,
        nonce: flow.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      });
      return { ok: true, value: { url: url.href, flow } };
    },
    /**
     * The claims of the person who comes back.
     * @param query - what the provider has added to the address of the callback
     */
    async finish(oidc: OidcSettings, flow: Flow, query: string): Promise<ProviderResult<Claims>> {
      const found = await discovered(oidc);
      if (!found.ok) return found;
      const address = new URL(flow.redirectUrl);
      address.search = query;
      try {
        return { ok: true, value: await claimsOf(found.value, address, flow, oidc) };
      } catch (error) {
        return await failureOf(error);
      }
    },
  };
}

async function discover(oidc: OidcSettings): Promise<ProviderResult<Configuration>> {
  try {
    const client = await import("openid-client");
    const { client_id, client_secret } = oidc;
    const issuer = new URL(oidc.issuer);
    const configuration = await client.discovery(issuer, client_id, {}, client.ClientSecretBasic(client_secret), {
      timeout: ANSWER_LIMIT_SECONDS,
      // The signature of the id token is checked too, so that it does not depend on the connection alone.
      execute: [
        client.enableNonRepudiationChecks,
        ...(issuer.protocol === "http:" ? [client.allowInsecureRequests] : []),
      ],
      [client.customFetch]: fetchBounded,
    });
    return { ok: true, value: configuration };
  } catch (error) {
    return { ok: false, failure: "unreachable", reason: reasonOf(error) };
  }
}

const fetchBounded: CustomFetch = async (url, options) => {
  const response = await fetch(url, options as RequestInit);
  const bytes = await readBounded(response.body, MAX_ANSWER_BYTES);
  if (bytes === undefined) throw new TypeError(`more than ${MAX_ANSWER_BYTES} bytes`);
  const { status, headers } = response;
  return new Response(bytes.length === 0 ? null : (bytes as Uint8Array<ArrayBuffer>), { status, headers });
};

/** Providers have some claims in the id token, and the others where the access token leads. */
async function claimsOf(configuration: Configuration, address: URL, flow: Flow, oidc: OidcSettings): Promise<Claims> {
  const client = await import("openid-client");
  const tokens = await client.authorizationCodeGrant(configuration, address, {
    expectedState: flow.state,
    expectedNonce: flow.nonce,
    pkceCodeVerifier: flow.verifier,
    idTokenExpected: true,
  });
  const own = tokens.claims() as NonNullable<ReturnType<typeof tokens.claims>>;
  const isComplete = [oidc.name_claim, oidc.role_claim].every((name) => claimAt(own, name) !== undefined);
  if (isComplete || configuration.serverMetadata().userinfo_endpoint === undefined) return own;
  return { ...(await client.fetchUserInfo(configuration, tokens.access_token, own.sub)), ...own };
}

/** What a provider answers is either an OAuth error or breaks a rule; anything else means that it did not answer. */
async function failureOf(error: unknown): Promise<ProviderResult<never>> {
  const client = await import("openid-client");
  const reason = reasonOf(error);
  if (error instanceof client.AuthorizationResponseError) return { ok: false, failure: "denied", reason };
  const isAnswer = error instanceof client.ResponseBodyError || error instanceof client.ClientError;
  const isSilent = error instanceof client.ClientError && error.code === "OAUTH_TIMEOUT";
  return { ok: false, failure: isAnswer && !isSilent ? "invalid" : "unreachable", reason };
}

/** Without the words of the provider, which may quote what it was sent. */
function reasonOf(error: unknown): string {
  const { code, message, name } = error as { code?: unknown; message?: string; name?: string };
  return `${message ?? name ?? "unknown"}${typeof code === "string" ? ` (${code})` : ""}`;
}

const LONGEST_NAME = 128;

/** Undefined role: the person may do nothing here. */
export function personOf(claims: Claims, oidc: OidcSettings): { name: string; role: Role | undefined } {
  const name = textOf(claimAt(claims, oidc.name_claim)) ?? textOf(claims.sub) ?? "";
  const claim = claimAt(claims, oidc.role_claim);
  const values = typeof claim === "string" ? [claim] : listOf(claim);
  const role = ROLES.findLast((each) => oidc.roles[each].some((value) => values.includes(value)));
  return { name: name.slice(0, LONGEST_NAME), role: role ?? oidc.default_role };
}
