// Backends behind https: whose certificates are accepted, and that nothing is sent to anyone else.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import { createAuthority, type ServerCertificate, selfSigned } from "../support/certificates.ts";
import { runCommand } from "../support/gateway-process.ts";
import { chatBody } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

type Tls = NonNullable<NonNullable<ConfigDocument["backends"]>[number]["tls"]>;

interface SecureCase {
  server: Pick<ServerCertificate, "chain" | "key">;
  tls?: Tls;
}

const nameOf = (what: string) => what.replace(/[^a-z]+/g, "-");

/** Values of server.upstream_client. */
const CLIENTS = ["sockets", "fetch"] as const;

const NAME = "engine.internal";
const authority = createAuthority();
const stranger = createAuthority("Another");
const byName = authority.issue([NAME]);
const byAddress = authority.issue(["127.0.0.1"]);
const expired = authority.issue([NAME], { isExpired: true });
const own = selfSigned([NAME]);

const bed = createTestBed();
const servers: { stop(closeConnections: boolean): unknown }[] = [];
afterAll(() => {
  for (const server of servers) server.stop(true);
});

/** A backend on 127.0.0.1 that speaks TLS only, and counts what it is asked. */
function secureBackend({ chain, key }: Pick<ServerCertificate, "chain" | "key">) {
  const seen = { requests: 0 };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    tls: { cert: chain, key },
    fetch() {
      seen.requests++;
      return new Response(chatBody("over TLS"), { headers: { "Content-Type": "application/json" } });
    },
  });
  servers.push(server);
  return { seen, url: `https://127.0.0.1:${server.port}` };
}

function configOf(client: (typeof CLIENTS)[number], url: string, tls: Tls | undefined): ConfigDocument {
  return {
    server: { upstream_client: client },
    retry: { max_attempts: 1 },
    // Whoever is checked again within a test is so because of a change, and not because it is time.
    health_checks: { interval: "1h", warmup_check_interval: "1h" },
    backends: [{ name: "a", type: "vllm", url, models: ["m"], ...(tls && { tls }) }],
  };
}

describe.each([...CLIENTS])("%s", (client) => {
  // Which turns the check off for whoever does not ask for it.
  const environment = { NODE_TLS_REJECT_UNAUTHORIZED: "0" };

  async function start(url: string, tls: Tls | undefined, files: Record<string, string> = {}) {
    const gateway = await bed.gateway({ config: configOf(client, url, tls), files, environment });
    return { gateway, admin: new AdminClient(gateway) };
  }

  /** One gateway with a backend for each case, which is its model, too. */
  async function startWith(cases: Record<string, SecureCase>) {
    const backends = Object.entries(cases).map(([what, { server, tls }]) => {
      const name = nameOf(what);
      const { url, seen } = secureBackend(server);
      return { seen, entry: { name, type: "vllm", url, models: [name], ...(tls && { tls }) } };
    });
    const config = { ...configOf(client, "", undefined), backends: backends.map(({ entry }) => entry) };
    const gateway = await bed.gateway({ config, files: { "tls/authority.pem": authority.root }, environment });
    return { gateway, seenBy: Object.fromEntries(backends.map(({ seen, entry }) => [entry.name, seen])) };
  }

  describe("accepted", () => {
    const cases: Record<string, SecureCase> = {
      "its authority as text, its name": { server: byName, tls: { ca: authority.root, server_name: NAME } },
      "its authority in a file, its name": { server: byName, tls: { ca: "tls/authority.pem", server_name: NAME } },
      "its authority, its own address": { server: byAddress, tls: { ca: authority.root } },
      "several authorities": { server: byName, tls: { ca: stranger.root + authority.root, server_name: NAME } },
      "its own certificate": { server: own, tls: { ca: own.leaf, server_name: NAME } },
    };
    let all: Awaited<ReturnType<typeof startWith>>;
    beforeAll(async () => {
      all = await startWith(cases);
    });
    test.each(Object.keys(cases))("%s", async (what) => {
      const name = nameOf(what);
      expect(await all.gateway.backend(name)).toMatchObject({ is_healthy: true, last_error: null });
      const response = await all.gateway.chat({ model: name });
      expect(response.status).toBe(200);
      expect(await response.text()).toContain("over TLS");
    });
  });

  describe("refused", () => {
    const known = { ca: authority.root, server_name: NAME };
    const cases: Record<string, SecureCase> = {
      "an authority that the system does not know": { server: byName },
      "the same, asked for by its name": { server: byName, tls: { server_name: NAME } },
      "another authority": { server: byName, tls: { ca: stranger.root, server_name: NAME } },
      "another name": { server: byName, tls: { ca: authority.root, server_name: `other.${NAME}` } },
      "not the name in the url": { server: byName, tls: { ca: authority.root } },
      "a certificate that is over": { server: expired, tls: known },
      "a certificate that signs itself": { server: own, tls: known },
      "no intermediate": { server: { chain: byName.leaf, key: byName.key }, tls: known },
    };
    let all: Awaited<ReturnType<typeof startWith>>;
    beforeAll(async () => {
      all = await startWith(cases);
    });
    test.each(Object.keys(cases))("%s", async (what) => {
      const name = nameOf(what);
      const { is_healthy, last_error } = await all.gateway.backend(name);
      expect(is_healthy).toBe(false);
      expect(last_error).toMatch(/^the TLS certificate is not accepted \([A-Z_]+\)$/);
      expect((await all.gateway.chat({ model: name })).status).toBe(503);
      expect(all.seenBy[name]?.requests).toBe(0);
    });
  });

  test("refused without health checks: the client is told that nobody could be reached", async () => {
    const backend = secureBackend(byName);
    const config = { ...configOf(client, backend.url, { ca: stranger.root, server_name: NAME }) };
    const gateway = await bed.gateway({ config: { ...config, health_checks: { enabled: false } }, awaitHealth: false });
    const response = await gateway.chat();
    expect(response.status).toBe(502);
    expect(await response.text()).toContain("Could not connect to backend 'a'");
    expect(backend.seen.requests).toBe(0);
  });

  test("an edit of the file counts at once; one that is broken leaves in force what was read before", async () => {
    const backend = secureBackend(byName);
    const tls = { ca: "authority.pem", server_name: NAME };
    const { gateway } = await start(backend.url, tls, { "authority.pem": stranger.root });
    expect((await gateway.backend("a")).is_healthy).toBe(false);
    const edit = (text: string) => {
      const path = join(gateway.folder, "authority.pem");
      writeFileSync(`${path}.new`, text);
      renameSync(`${path}.new`, path);
    };
    edit(authority.root);
    await gateway.waitForHealth("a", true);
    edit("no certificate");
    const entry = await waitFor("the log says so", () =>
      gateway.printed.logEntries.find(({ msg }) => msg === "an edited file could not be followed"),
    );
    expect(JSON.stringify(entry)).toContain("backends[0].tls.ca: the file holds no certificate");
    expect((await gateway.chat()).status).toBe(200);
  });

  test("a change through the API counts at once, too, and is refused with its field when the file is wrong", async () => {
    const backend = secureBackend(byName);
    const { gateway, admin } = await start(backend.url, { ca: stranger.root, server_name: NAME });
    expect((await gateway.backend("a")).is_healthy).toBe(false);
    await admin.ok("PUT", "/admin/backends/a", { tls: { ca: authority.root } });
    await gateway.waitForHealth("a", true);
    expect((await gateway.chat()).status).toBe(200);
    const { fields } = await admin.refused(400, "PUT", "/admin/backends/a", { tls: { ca: "away.pem" } });
    expect(fields).toEqual(["tls.ca"]);
    expect(await admin.get("/admin/backends/a")).toMatchObject({ tls: { ca: authority.root, server_name: NAME } });
  });
});

test.each<[what: string, url: string, tls: Tls, problem: string]>([
  ["a file that is missing", "https://127.0.0.1:9", { ca: "away.pem" }, "backends[0].tls.ca: the file cannot be read"],
  ["a file that holds a key", "https://127.0.0.1:9", { ca: "key.pem" }, "backends[0].tls.ca: the file holds something"],
  ["text that is cut off", "https://127.0.0.1:9", { ca: authority.root.slice(0, 99) }, "backends[0].tls.ca: holds a"],
  ["an address without TLS", "http://127.0.0.1:9", { ca: authority.root }, "backends[0].tls: is for addresses"],
])("the start is refused: %s", async (_what, url, tls, problem) => {
  const { exitCode, stderr } = await runCommand({
    config: configOf("fetch", url, tls),
    files: { "key.pem": byName.key },
  });
  expect(exitCode).toBe(1);
  expect(stderr).toContain(problem);
});
