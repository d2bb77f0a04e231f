// The dashboard behind a real nginx that ends TLS and leaves everything else as it is by default: signing in, live events and
// changes work there, and the cookie is for encrypted ways only.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { programPath } from "../../scripts/debian-packages.ts";
import { type Browser, launchBrowser } from "../support/browser.ts";
import { type BusyGateway, startBusyGateway } from "../support/busy-gateway.ts";
import { createAuthority } from "../support/certificates.ts";
import { freePort } from "../support/free-port.ts";
import { type ServerProgram, startServerProgram } from "../support/server-program.ts";
import { waitFor } from "../support/wait-for.ts";

setDefaultTimeout(60_000);

const TOKEN = "sekret-token";
const folder = mkdtempSync(join(tmpdir(), "signalbox-dashboard-"));
const authority = createAuthority();
let busy: BusyGateway;
let browser: Browser;
let proxy: ServerProgram;
let address: string;

beforeAll(async () => {
  [busy, browser] = await Promise.all([
    startBusyGateway({ auth: { method: "bearer_token", token: TOKEN } }),
    launchBrowser(),
  ]);
  const { chain, key } = authority.issue(["127.0.0.1"]);
  writeFileSync(join(folder, "chain.pem"), chain);
  writeFileSync(join(folder, "key.pem"), key);
  const port = await freePort();
  address = `https://127.0.0.1:${port}`;
  const file = join(folder, "nginx.conf");
  writeFileSync(file, nginxConfig(port, busy.gateway.port));
  const tls = { ca: authority.root };
  proxy = await startServerProgram({
    name: "nginx",
    prepare: () => [programPath("nginx"), "-c", file, "-e", "stderr"],
    isReady: async () => (await fetch(`${address}/healthz`, { tls }).catch(() => undefined)) !== undefined,
  });
});

afterAll(async () => {
  await browser?.close();
  await proxy?.stop();
  await busy?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** It says nothing of the scheme, and would hold answers back where it may. */
function nginxConfig(port: number, gatewayPort: number): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  return `daemon off;
master_process off;
pid ${folder}/nginx.pid;
error_log stderr warn;
events {}
http {
access_log off;
${temporary.map((path) => `${path}_temp_path ${folder}/${path};`).join("\n")}
server {
  listen 127.0.0.1:${port} ssl;
  ssl_certificate ${folder}/chain.pem;
  ssl_certificate_key ${folder}/key.pem;
  location / {
    proxy_pass http://127.0.0.1:${gatewayPort};
    proxy_set_header Host $http_host;
  }
}
}
`;
}

test("signing in, live events, a change and signing out work as without it", async () => {
  const context = await browser.context({ ignoreHTTPSErrors: true });
  const { page, offences } = await browser.open(context, `${address}/dashboard#/backends`);
  await page.getByLabel("Token").fill(TOKEN);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Backends" }).waitFor();
  const [cookie] = await context.cookies();
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict", secure: true, path: "/admin" });
  await page.getByText("Live", { exact: true }).waitFor();

  await page.getByRole("button", { name: "Weight of gpu-1" }).click();
  await page.getByLabel("Weight, 0 to 100").fill("9");
  await page.locator("dialog").getByRole("button", { name: "Set the weight" }).click();
  await page.locator("dialog").waitFor({ state: "detached" });
  const headers = { Authorization: `Bearer ${TOKEN}` };
  const { backends } = (await (await busy.gateway.fetch("/admin/backends", { headers })).json()) as {
    backends: { name: string; weight: number }[];
  };
  expect(backends.find(({ name }) => name === "gpu-1")?.weight).toBe(9);

  await page.evaluate('location.hash = "#/requests"');
  await page.getByRole("heading", { name: "Requests" }).waitFor();
  const rows = page.getByRole("region", { name: /^Requests/ }).locator("tbody a");
  await waitFor("a request comes by the live events", async () => {
    await busy.load(1);
    return (await rows.count()) > 0;
  });
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  expect(await context.cookies()).toEqual([]);
  expect(offences.filter((offence) => !/status of 401/.test(offence))).toEqual([]);
  await context.close();
});
