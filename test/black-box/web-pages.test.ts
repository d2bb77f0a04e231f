// Web pages in somebody's browser: what they cannot spend, and how those that are allowed use the gateway (CORS).

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { expectError } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatStream, failure } from "../support/openai-answers.ts";
import { postBytes, RawConnection, type RawResponse } from "../support/raw-http.ts";
import { readSse } from "../support/sse-reader.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const APP = "https://app.example";
const BODY = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });
const KEY = "sk-sekret-client";

const bed = createTestBed();
const backend = bed.backend({ models: ["m"] });
const backends = [{ name: "b", type: "vllm" as const, url: backend.url, api_key: "sekret-backend" }];

beforeEach(() => backend.reset(chat("hello")));

async function raw(gateway: Gateway, bytes: string | Uint8Array): Promise<RawResponse> {
  const connection = await RawConnection.open(gateway.port);
  connection.write(bytes);
  const response = await connection.response();
  connection.close();
  return response;
}

describe("a gateway on this machine that asks for no key", () => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await bed.gateway({
      config: { server: { bind_address: ["127.0.0.1:0", "unix:gateway.sock"] }, backends },
    });
  });

  const spent = () => backend.requests.filter(({ method }) => method === "POST").length;

  test("a page of another origin spends nothing, whatever type its body has", async () => {
    for (const type of ["text/plain", "application/json", "application/x-www-form-urlencoded"]) {
      for (const origin of ["https://evil.example", "null", `http://evil.example:${gateway.port}`]) {
        const response = await gateway.chat({}, { headers: { "Content-Type": type, Origin: origin } });
        const error = await expectError(response, 403);
        expect(error.message).toContain("server.cors.allowed_origins");
        expect(response.headers.get("access-control-allow-origin")).toBeNull();
      }
    }
    await expectError(await gateway.chat({}, { headers: { "Sec-Fetch-Site": "cross-site" } }), 403);
    await expectError(await gateway.fetch("/v1/models", { headers: { "Sec-Fetch-Site": "cross-site" } }), 403);
    const answer = await gateway.post("/v1/messages", BODY, { headers: { Origin: "https://evil.example" } });
    expect(await answer.json()).toMatchObject({ type: "error", error: { type: "permission_error" } });
    expect(answer.status).toBe(403);
    expect(spent()).toBe(0);
  });

  test("a page whose name leads to this machine (DNS rebinding) spends nothing", async () => {
    for (const host of ["evil.example", `evil.example:${gateway.port}`, "localhost.evil.example", "0.0.0.0"]) {
      const headers = { Host: host, Origin: `http://${host}`, "Sec-Fetch-Site": "same-origin" };
      const error = await expectError(await gateway.chat({}, { headers }), 403);
      expect(error.message).toContain("server.allowed_hosts");
      await expectError(await gateway.chat({}, { headers: { Host: host } }), 403);
      await expectError(await gateway.fetch("/v1/models", { headers: { Host: host } }), 403);
      await expectError(await gateway.fetch("/admin/config", { headers: { Host: host } }), 403);
    }
    expect(spent()).toBe(0);
  });

  test("clients that are no browsers notice nothing", async () => {
    for (const host of [
      "localhost",
      `localhost:${gateway.port}`,
      "127.0.0.1",
      "[::1]:1",
      "host.docker.internal:8080",
    ]) {
      const response = await gateway.chat({}, { headers: { Host: host } });
      expect([host, response.status, response.headers.get("vary")]).toEqual([host, 200, null]);
    }
  });

  test("probes may name any host, or none", async () => {
    expect((await gateway.fetch("/health", { headers: { Host: "gateway.example" } })).status).toBe(200);
    expect((await gateway.fetch("/readyz", { headers: { Origin: "https://evil.example" } })).status).toBe(200);
    expect((await raw(gateway, "GET /health HTTP/1.0\r\n\r\n")).status).toBe(200);
    expect((await raw(gateway, "GET /v1/models HTTP/1.0\r\n\r\n")).status).toBe(403);
    expect((await raw(gateway, "GET /admin/config HTTP/1.0\r\n\r\n")).status).toBe(403);
  });

  test("peers on a unix socket may name any host", async () => {
    const unix = join(gateway.folder, "gateway.sock");
    const response = await fetch("http://gateway.example/v1/chat/completions", {
      method: "POST",
      body: BODY,
      unix,
    });
    expect(response.status).toBe(200);
    expect((await fetch("http://gateway.example/admin/config", { unix })).status).toBe(200);
  });

  test("a page of this machine, on whatever port, asks and reads", async () => {
    const origin = "http://localhost:3000";
    const response = await gateway.chat({}, { headers: { Origin: origin, "Sec-Fetch-Site": "same-site" } });
    expect(response.status).toBe(200);
    expect(response.headers.get("access-control-allow-origin")).toBe(origin);
    expect(response.headers.get("vary")).toBe("Origin");
  });

  test.each([
    ["empty", "Host:"],
    ["blank", "Host:  "],
    ["repeated", "Host: localhost\r\nHost: localhost"],
    ["repeated and empty", "Host: localhost\r\nHost:"],
    ["two", "Host: localhost\r\nHost: evil.example"],
    ["with a path", "Host: localhost/admin"],
    ["with a user", "Host: evil@localhost"],
    ["with a query", "Host: localhost?x"],
    ["with a fragment", "Host: localhost#x"],
    ["with a blank", "Host: localhost evil"],
    ["with a tab", "Host: localhost\tevil"],
    ["with a backslash", "Host: localhost\\admin"],
    ["with a comma", "Host: localhost,evil"],
    ["encoded", "Host: localhost%2fadmin"],
    ["with a port that is none", "Host: localhost:port"],
    ["with too large a port", "Host: localhost:99999"],
    ["an address without its bracket", "Host: [::1"],
    ["a URL", "Host: http://localhost"],
  ])("a Host that names none is 400 everywhere: %s", async (_, line) => {
    for (const target of ["/health", "/v1/models", "/v1/models/m", "/admin/config", "/admin/config/retry", "/x"]) {
      const response = await raw(gateway, `GET ${target} HTTP/1.1\r\n${line}\r\n\r\n`);
      expect([target, response.status]).toEqual([target, 400]);
    }
    const bytes = postBytes("/v1/chat/completions", BODY).toString().replace("Host: 127.0.0.1", line);
    expect((await raw(gateway, bytes)).status).toBe(400);
    expect(spent()).toBe(0);
  });
});

describe("with server.cors.allowed_origins", () => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await bed.gateway({
      config: {
        server: { cors: { allowed_origins: [APP] } },
        backends: [...backends, { name: "broken", type: "vllm", url: "http://127.0.0.1:9", models: ["broken"] }],
        fallback: { fallback_chains: { broken: ["m"] } },
        retry: { max_attempts: 1 },
        health_checks: { enabled: false },
      },
    });
  });

  const preflight = (path: string, origin = APP, more: Record<string, string> = {}) =>
    gateway.fetch(path, {
      method: "OPTIONS",
      headers: {
        Origin: origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,x-stainless-os",
        ...more,
      },
    });

  test("a preflight is answered with what was asked for", async () => {
    const response = await preflight("/v1/chat/completions");
    expect(response.status).toBe(204);
    expect(await response.text()).toBe("");
    const { headers } = response;
    expect(headers.get("access-control-allow-origin")).toBe(APP);
    expect(headers.get("access-control-allow-methods")).toBe("POST");
    expect(headers.get("access-control-allow-headers")).toBe("authorization,content-type,x-stainless-os");
    expect(headers.get("access-control-max-age")).toBe("600");
    expect(headers.get("access-control-allow-private-network")).toBeNull();
    expect(headers.get("access-control-allow-credentials")).toBeNull();
    expect(headers.get("vary")).toContain("Origin");
  });

  test("a preflight of a page that is farther away gets leave for the private network", async () => {
    const response = await preflight("/v1/models/org/m", APP, { "Access-Control-Request-Private-Network": "true" });
    expect(response.headers.get("access-control-allow-private-network")).toBe("true");
    expect(response.headers.get("access-control-allow-methods")).toBe("GET, HEAD");
  });

  test("other origins, other paths and other OPTIONS get no leave", async () => {
    const refused = await preflight("/v1/chat/completions", "https://evil.example");
    await expectError(refused, 403);
    expect(refused.headers.get("access-control-allow-origin")).toBeNull();
    await expectError(await preflight("/v1/nothing"), 404);
    await expectError(await preflight("/v1/%2e%2e%2fadmin/config"), 400);
    await expectError(await gateway.fetch("/v1/chat/completions", { method: "OPTIONS" }), 405);
    for (const path of ["/admin/config", "/admin/config/retry", "/admin/backends"]) {
      for (const origin of [APP, "http://localhost:3000"]) {
        const response = await preflight(path, origin);
        expect([path, response.status, response.headers.get("access-control-allow-headers")]).toEqual([
          path,
          405,
          null,
        ]);
      }
    }
  });

  test("an answer can be read, headers included", async () => {
    const response = await gateway.chat({}, { headers: { Origin: APP } });
    expect(response.status).toBe(200);
    expect(response.headers.get("access-control-allow-origin")).toBe(APP);
    expect(response.headers.get("vary")).toBe("Origin");
    const exposed = (response.headers.get("access-control-expose-headers") ?? "").split(", ");
    const own = ["X-Request-ID", "X-Signalbox-Backend", "X-Signalbox-Dropped", "X-Fallback-Used", "X-Cache"];
    for (const name of [...own, "Retry-After"]) expect(exposed).toContain(name);
  });

  test("so can a stream, an answer of a stand-in, an error of a backend, and a refusal", async () => {
    const headers = { Origin: APP };
    const readable = (response: Response) => response.headers.get("access-control-allow-origin");
    backend.queue(chatStream(["a", "b"]));
    const stream = await gateway.chat({ stream: true }, { headers });
    expect([stream.status, readable(stream)]).toEqual([200, APP]);
    expect((await readSse(stream)).data.at(-1)).toBe("[DONE]");
    const standIn = await gateway.chat({ model: "broken" }, { headers });
    expect([standIn.headers.get("x-fallback-used"), readable(standIn)]).toEqual(["true", APP]);
    backend.queue(failure(400));
    const failed = await gateway.chat({}, { headers });
    expect([failed.status, readable(failed)]).toEqual([400, APP]);
    const unknown = await gateway.chat({ model: "nothing" }, { headers });
    expect([unknown.status, readable(unknown)]).toEqual([404, APP]);
    const nowhere = await gateway.fetch("/v1/nothing", { headers });
    expect([nowhere.status, readable(nowhere)]).toEqual([404, APP]);
  });

  test("every answer varies by origin, so that no cache mixes them up", async () => {
    expect((await gateway.fetch("/v1/models")).headers.get("vary")).toBe("Origin");
  });

  test("the admin API is not among it", async () => {
    for (const origin of [APP, "http://localhost:3000"]) {
      const response = await gateway.fetch("/admin/config", { headers: { Origin: origin } });
      await expectError(response, 403);
      expect(response.headers.get("access-control-allow-origin")).toBeNull();
    }
    expect((await gateway.fetch("/admin/config", { headers: { Origin: gateway.url } })).status).toBe(200);
  });

  test("a change of the list holds from the next request on", async () => {
    const other = "https://other.example";
    await expectError(await gateway.chat({}, { headers: { Origin: other } }), 403);
    const response = await gateway.fetch("/admin/config/server", {
      method: "PATCH",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ cors: { allowed_origins: [APP, other] } }),
    });
    expect(response.status).toBe(200);
    expect((await gateway.chat({}, { headers: { Origin: other } })).headers.get("access-control-allow-origin")).toBe(
      other,
    );
  });
});

test("with keys that are required, a page of any origin has the key that it was given", async () => {
  const gateway = await bed.gateway({
    config: { backends, api_keys: { mode: "blocking", keys: [{ key: KEY, scopes: ["read", "write"] }] } },
  });
  const Authorization = `Bearer ${KEY}`;
  const headers = { Origin: "https://evil.example", Host: "gateway.example" };
  expect((await gateway.chat({}, { headers })).status).toBe(401);
  const response = await gateway.chat({}, { headers: { ...headers, Authorization } });
  expect([response.status, response.headers.get("access-control-allow-origin")]).toEqual([200, null]);
});

describe("server.allowed_hosts", () => {
  test("names what a proxy in front is asked for", async () => {
    const gateway = await bed.gateway({ config: { server: { allowed_hosts: ["*.example.com"] }, backends } });
    expect((await gateway.chat({}, { headers: { Host: "gateway.example.com" } })).status).toBe(200);
    await expectError(await gateway.chat({}, { headers: { Host: "evil.example" } }), 403);
  });

  test("a mistake in it is named", async () => {
    const gateway = await bed.gateway({ config: { backends } });
    for (const server of [
      { allowed_hosts: ["http://gateway.example.com"] },
      { allowed_hosts: ["gateway.example.com:8080"] },
      { cors: { allowed_origins: ["app.example"] } },
      { cors: { allowed_origins: ["https://app.example/"] } },
      { unix_socket_mode: "0888" },
    ]) {
      const response = await gateway.fetch("/admin/config/server", {
        method: "PATCH",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(server),
      });
      const field = "cors" in server ? "server.cors.allowed_origins" : `server.${Object.keys(server)[0]}`;
      expect(JSON.stringify(await expectError(response, 400))).toContain(field);
    }
  });
});

describe("at the start", () => {
  const WARNING = /no API key is required/;
  const warned = (gateway: Gateway) => gateway.printed.logEntries.some(({ msg }) => WARNING.test(String(msg)));

  test("an address that other machines reach is a warning while no key is required", async () => {
    const gateway = await bed.gateway({ config: { server: { bind_address: ["127.0.0.1:0", "0.0.0.0:0"] }, backends } });
    await waitFor("the warning", () => warned(gateway));
    // Any Host: the name under which other machines know it is not known here.
    expect((await gateway.chat({}, { headers: { Host: "gateway.lan" } })).status).toBe(200);
    await expectError(await gateway.chat({}, { headers: { Host: "gateway.lan", Origin: APP } }), 403);
  });

  test("otherwise there is none", async () => {
    const closed = { mode: "blocking" as const, keys: [{ key: KEY, scopes: ["read" as const, "write" as const] }] };
    for (const config of [
      { backends },
      { server: { bind_address: ["127.0.0.1:0", "0.0.0.0:0"] }, api_keys: closed, backends },
    ]) {
      const gateway = await bed.gateway({ config });
      await gateway.fetch("/nothing");
      await waitFor("the access log", () => gateway.printed.logEntries.some(({ path }) => path === "/nothing"));
      expect(warned(gateway)).toBe(false);
    }
  });
});
