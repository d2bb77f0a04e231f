// Visits to the OpenID provider: how long one is good for, and how many there are, by a clock of the test.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { oidcRoutes } from "../../src/admin/oidc.ts";
import type { Call } from "../../src/server/endpoint.ts";
import { OIDC_CLIENT, startOidcProvider, type TestProvider } from "../support/oidc-provider.ts";
import { settingsOf } from "../support/serve-routes.ts";

type Answers = { handle(call: Call): Promise<Response> };

const MINUTE_MS = 60_000;
let provider: TestProvider;

beforeAll(async () => {
  provider = await startOidcProvider(["http://localhost"]);
});

afterAll(() => provider.close());

function setUp() {
  const time = { ms: 0 };
  const oidc = { ...OIDC_CLIENT, issuer: provider.issuer, default_role: "viewer" };
  const settings = settingsOf({ admin: { auth: { method: "oidc", oidc } } });
  const reasons: string[] = [];
  const [begin, finish] = oidcRoutes({
    settings: () => settings,
    clock: { now: () => time.ms, wallTime: () => time.ms },
    log: { info() {}, warn: (fields) => void reasons.push((fields as { failure: string }).failure) },
  }) as unknown as [Answers, Answers];
  const call = (path: string, cookie = "") =>
    ({
      request: new Request(`http://localhost${path}`, { headers: { Host: "localhost", Cookie: cookie } }),
      context: { peerAddress: () => "127.0.0.1" },
      headers: {},
    }) as unknown as Call;

  async function visit(): Promise<{ state: string; cookie: string }> {
    const response = await begin.handle(call("/admin/oidc/sign-in"));
    const state = new URL(response.headers.get("location") as string).searchParams.get("state") as string;
    return { state, cookie: (response.headers.getSetCookie()[0] as string).split(";")[0] as string };
  }

  /** Why it is refused; "invalid" for a visit that is known, whose code the provider has not given. */
  async function finished({ state, cookie }: { state: string; cookie: string }): Promise<string | undefined> {
    await finish.handle(call(`/admin/oidc/callback?code=none&state=${state}&iss=${provider.issuer}`, cookie));
    return reasons.pop();
  }
  return { time, visit, finished };
}

test("a visit is good for ten minutes", async () => {
  const { time, visit, finished } = setUp();
  const [early, late] = [await visit(), await visit()];
  time.ms = 10 * MINUTE_MS - 1;
  expect(await finished(early)).toBe("invalid");
  time.ms = 10 * MINUTE_MS + 1;
  expect(await finished(late)).toBe("over");
});

test("of more than a thousand visits the oldest ends", async () => {
  const { visit, finished } = setUp();
  const first = await visit();
  const second = await visit();
  for (let count = 0; count < 999; count++) await visit();
  expect(await finished(first)).toBe("over");
  expect(await finished(second)).toBe("invalid");
});
