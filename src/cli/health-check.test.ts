// The health probe against real listeners, and the address it derives from the configuration.

import { afterEach, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { documentSchema } from "../config/sections/registry.ts";
import { defaultHealthCheckUrl, runHealthCheck } from "./health-check.ts";

const servers: { stop(force: boolean): Promise<void> }[] = [];

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop(true)));
});

function serve(handler: (request: Request) => Response | Promise<Response>): string {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: handler });
  servers.push(server);
  return `http://127.0.0.1:${server.port}/health`;
}

describe("runHealthCheck", () => {
  test("200 is healthy", async () => {
    const url = serve((request) => new Response(request.method, { status: request.method === "GET" ? 200 : 500 }));
    expect(await runHealthCheck(url)).toEqual({ healthy: true, message: `${url} answered 200` });
  });

  test.each([204, 301, 404, 500, 503])("%d is not", async (status) => {
    const url = serve(() => new Response(null, { status, headers: { location: "/elsewhere" } }));
    expect(await runHealthCheck(url)).toEqual({ healthy: false, message: `${url} answered ${status}` });
  });

  test("a refused connection is not", async () => {
    const url = serve(() => new Response());
    await servers.pop()?.stop(true);
    expect(await runHealthCheck(url.replace("//", "//user:secret@"))).toEqual({
      healthy: false,
      message: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/health could not be reached \(\w+\)$/),
    });
  });

  test("silence is not, and ends with the timeout", async () => {
    const url = serve(() => new Promise<Response>(() => {}));
    expect(await runHealthCheck(url, 50)).toEqual({ healthy: false, message: `${url} did not answer within 50 ms` });
  });

  test("a unix socket is asked for /health", async () => {
    const folder = await mkdtemp(join(tmpdir(), "health-check-"));
    const unix = join(folder, "s.sock");
    const server = Bun.serve({
      unix,
      fetch: (request) => new Response(null, { status: new URL(request.url).pathname === "/health" ? 200 : 404 }),
    });
    servers.push(server);
    expect(await runHealthCheck(`unix:${unix}`)).toMatchObject({ healthy: true });
    await rm(folder, { recursive: true });
  });
});

describe("defaultHealthCheckUrl", () => {
  test.each<[string | string[], string | undefined]>([
    ["127.0.0.1:8080", "http://127.0.0.1:8080/health"],
    ["0.0.0.0:80", "http://127.0.0.1:80/health"],
    ["[::]:8080", "http://[::1]:8080/health"],
    ["[::1]:8080", "http://[::1]:8080/health"],
    ["gateway.internal:8080", "http://gateway.internal:8080/health"],
    [["unix:/run/s.sock", "0.0.0.0:80"], "unix:/run/s.sock"],
    ["unix:s.sock", "unix:/etc/signalbox/s.sock"],
    ["127.0.0.1:0", undefined],
  ])("%j: %s", (bind_address, expected) => {
    expect(defaultHealthCheckUrl(documentSchema.parse({ server: { bind_address } }).server, "/etc/signalbox")).toBe(
      expected,
    );
  });
});
