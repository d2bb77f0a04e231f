// A real nginx and a real HAProxy that let nothing but /v1/ through: no disguise and no smuggled request leads past them.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { DISGUISES, OTHER_PATHS } from "../attacks/disguises.ts";
import { attack, logBarrier } from "../attacks/smuggle.ts";
import { FORMS } from "../attacks/smuggling-forms.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat } from "../support/openai-answers.ts";
import { type OpenApiOperation, operationsOf, samplePath } from "../support/openapi.ts";
import { PROXIES, type ProxyName, type ProxyServer, startProxy } from "../support/proxy-server.ts";
import { RawConnection } from "../support/raw-http.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend({ models: ["m"], answer: chat("hello") });
/** Spellings that a proxy takes for something below /v1/, or cannot judge. */
const SPELLINGS = [...DISGUISES, ...OTHER_PATHS].filter(({ of }) => /^(\/v1|http)/.test(of("/admin")));

let gateway: Gateway;
/** Whatever such a proxy does not let through. */
let guarded: OpenApiOperation[];

beforeAll(async () => {
  gateway = await bed.gateway({ config: { backends: [{ name: "b", type: "vllm", url: backend.url }] } });
  const operations = operationsOf((await (await gateway.fetch("/openapi.json")).json()) as object);
  guarded = operations.filter(({ path }) => !path.startsWith("/v1/"));
  expect(guarded.length).toBeGreaterThan(40);
});

/** The status of the answer; 0 for none. */
async function ask(port: number, method: string, target: string): Promise<number> {
  const connection = await RawConnection.open(port);
  const body = method === "GET" ? "" : "{}";
  connection.write(
    `${method} ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await waitFor(`${target} is over`, () => connection.isClosed);
  return Number(/^HTTP\/1\.[01] (\d{3})/.exec(connection.received.toString("latin1"))?.[1] ?? 0);
}

describe.each(Object.keys(PROXIES) as ProxyName[])("%s", (name) => {
  let proxy: ProxyServer;
  beforeAll(async () => {
    proxy = await startProxy(name, gateway.port);
  });
  afterAll(() => proxy?.stop());

  /** Lines of the access log since the last time that somebody asked. */
  let read = 0;
  async function loggedSince(): Promise<Record<string, unknown>[]> {
    await logBarrier(gateway);
    const entries = gateway.printed.logEntries.filter(({ msg, path }) => msg === "request" && path !== undefined);
    const fresh = entries.slice(read);
    read = entries.length;
    return fresh;
  }

  test("lets /v1/ through, and nothing else", async () => {
    expect(await ask(proxy.port, "GET", "/v1/models")).toBe(200);
    expect(await ask(proxy.port, "GET", "/admin/config")).toBe(403);
    expect(await ask(proxy.port, "GET", "/health")).toBe(403);
  });

  test("no disguise leads to anything that it guards", async () => {
    await loggedSince();
    const served: string[] = [];
    for (const { of } of SPELLINGS) {
      await Promise.all(
        guarded.map(async ({ method, path }) => {
          const target = of(samplePath(path, { model: "m", name: "b" }));
          const status = await ask(proxy.port, method, target);
          if (status >= 200 && status < 400) served.push(`${method} ${target}: ${status}`);
        }),
      );
    }
    expect(served).toEqual([]);
    const reached = (await loggedSince()).filter(({ status }) => Number(status) < 400);
    expect(reached.filter(({ path }) => !String(path).startsWith("/v1/"))).toEqual([]);
    expect((await gateway.fetch("/admin/config")).headers.get("etag")).toBe('"1"');
  });

  test("no smuggled request comes through", async () => {
    await loggedSince();
    const attacked = await Promise.all(FORMS.map((form, index) => attack(proxy.port, form, index)));
    const logged = (await loggedSince()).map(({ path }) => path);
    for (const { hiddenPath } of attacked) expect(logged).not.toContain(hiddenPath);
    expect(await ask(proxy.port, "GET", "/v1/models")).toBe(200);
  });
});
