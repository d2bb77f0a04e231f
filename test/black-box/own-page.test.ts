// The page for holders of keys is open where the public API is, with its files and nothing else of the dashboard.

import { expect, test } from "bun:test";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
/** As a proxy hands on what comes from elsewhere. */
const ELSEWHERE = { headers: { "X-Forwarded-For": "203.0.113.5" } };

test("under the method none the shell and its files come from elsewhere too, the dashboard does not", async () => {
  const gateway = await bed.gateway({ config: { backends: [{ name: "demo", type: "demo", models: ["m"] }] } as never });
  const get = (path: string) => gateway.fetch(path, ELSEWHERE);
  const page = await get("/dashboard/me");
  expect([page.status, page.headers.get("cache-control")]).toEqual([200, "no-store"]);
  expect(page.headers.get("content-security-policy")).toContain("connect-src 'self'");
  const shell = await page.text();
  const files = [...shell.matchAll(/(?:src|href)="([\w.-]+\.(?:js|css))"/g)].map(([, name]) => name as string);
  expect(files.map((name) => name.replace(/-\w+\./, "."))).toEqual(["style.css", "theme.js", "me.js"]);
  for (const name of files) {
    const response = await get(`/dashboard/${name}`);
    expect(response.status).toBe(200);
    // The script has nothing of the admin API in it.
    if (name.startsWith("me-")) expect(await response.text()).not.toContain("admin/");
  }
  expect((await get("/dashboard")).status).toBe(403);
  const main = /dashboard\/(main-\w+\.js)/.exec(await (await gateway.fetch("/dashboard")).text())?.[1];
  expect((await get(`/dashboard/${main}`)).status).toBe(403);
  expect((await gateway.fetch(`/dashboard/${main}`)).status).toBe(200);
});

test("what it asks is refused under a host that is not allowed, and to pages of others", async () => {
  const keys = [{ key: "sekret-of-a", id: "a" }];
  const config = { server: { allowed_hosts: ["gateway.example"] }, api_keys: { keys } };
  const gateway = await bed.gateway({ config: config as never });
  const ask = async (host: string, origin = `http://${host}`) => {
    const headers = { Host: host, Origin: origin, Authorization: "Bearer sekret-of-a" };
    return (await gateway.fetch("/v1/me/requests", { headers })).status;
  };
  expect(await ask("gateway.example")).toBe(200);
  expect(await ask("evil.example")).toBe(403);
  expect(await ask("gateway.example", "http://evil.example")).toBe(403);
});
