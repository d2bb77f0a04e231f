// A real OpenID provider (oidc-provider) on a socket, whose people sign in by their name alone.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair } from "jose";

export const OIDC_CLIENT = { client_id: "signalbox", client_secret: "sekret-client-of-the-provider" };

export interface TestProvider {
  issuer: string;
  /** Roles of people by their names, as the claim `roles` has them. */
  roles: Map<string, string[]>;
  /** While true every answer is 503. */
  isAway: boolean;
  close(): Promise<void>;
}

/** As far as it is used here; the package has no types. */
interface Provider {
  callback(): (request: IncomingMessage, response: ServerResponse) => void;
  interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
  Grant: new (of: object) => { addOIDCScope(scope: string): void; save(): Promise<string> };
}

const SCOPE = "openid profile roles";

/** @param gatewayUrls - where it may send browsers back to */
export async function startOidcProvider(gatewayUrls: readonly string[]): Promise<TestProvider> {
  const server = createServer((request, response) => {
    if (state.isAway) response.writeHead(503).end();
    else if (request.url === "/favicon.ico") response.writeHead(204).end();
    else if (request.url?.startsWith("/interaction/")) void interact(provider, request, response);
    else handle(request, response);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const state: TestProvider = {
    ...{ issuer, roles: new Map(), isAway: false },
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
  const provider = await createProvider(state, gatewayUrls);
  const handle = provider.callback();
  return state;
}

async function createProvider({ issuer, roles }: TestProvider, gatewayUrls: readonly string[]): Promise<Provider> {
  const { Provider } = (await import("oidc-provider" as string)) as {
    Provider: new (issuer: string, options: object) => Provider;
  };
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  const provider = new Provider(issuer, {
    clients: [{ ...OIDC_CLIENT, redirect_uris: gatewayUrls.map((url) => `${url}/admin/oidc/callback`) }],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: "1", use: "sig", alg: "RS256" }] },
    cookies: { keys: ["sekret-of-cookies"] },
    features: { devInteractions: { enabled: false } },
    ttl: { Interaction: 600, Session: 600, Grant: 600 },
    pkce: { required: () => true },
    scopes: SCOPE.split(" "),
    claims: { openid: ["sub"], profile: ["preferred_username"], roles: ["roles"] },
    findAccount: (_: unknown, sub: string) => ({
      accountId: sub,
      claims: () => ({ sub, preferred_username: sub, roles: roles.get(sub) ?? [] }),
    }),
    async loadExistingGrant({ oidc }: { oidc: { client: { clientId: string }; session: { accountId: string } } }) {
      const grant = new provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
      grant.addOIDCScope(SCOPE);
      await grant.save();
      return grant;
    },
  });
  return provider;
}

/** The page of the provider. */
async function interact(provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== "POST") {
    const form = `<form method="post"><label>Account <input name="login"></label><button name="go" value="yes">Continue</button><button name="go" value="no">Cancel</button></form>`;
    response.writeHead(200, { "Content-Type": "text/html" }).end(`<!doctype html><title>Provider</title>${form}`);
    return;
  }
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const form = new URLSearchParams(Buffer.concat(chunks).toString());
  const result =
    form.get("go") === "no" ? { error: "access_denied" } : { login: { accountId: form.get("login"), remember: false } };
  await provider.interactionFinished(request, response, result);
}
