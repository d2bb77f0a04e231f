// Backends behind https: whose certificates are accepted, and that nothing is sent to anyone else.

import { afterAll, describe, expect, test } from "bun:test";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import { createAuthority, type ServerCertificate, selfSigned } from "../support/certificates.ts";
import { chatBody } from "../support/openai-answers.ts";
import { runCommand } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

type Tls = NonNullable<NonNullable<ConfigDocument["backends"]>[number]["tls"]>;

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
  async function start(url: string, tls: Tls | undefined, files: Record<string, string> = {}) {
    // Which turns the check off for whoever does not ask for it.
    const environment = { NODE_TLS_REJECT_UNAUTHORIZED: "0" };
    const gateway = await bed.gateway({ config: configOf(client, url, tls), files, environment });
    return { gateway, admin: new AdminClient(gateway) };
  }

  test.each<[what: string, server: ServerCertificate, tls: Tls]>([
    ["its authority as text, its name", byName, { ca: authority.root, server_name: NAME }],
    ["its authority in a file, its name", byName, { ca: "tls/authority.pem", server_name: NAME }],
    ["its authority, its own address", byAddress, { ca: authority.root }],
    ["several authorities", byName, { ca: stranger.root + authority.root, server_name: NAME }],
    ["its own certificate", own, { ca: own.leaf, server_name: NAME }],
  ])("accepted: %s", async (_what, server, tls) => {
    const backend = secureBackend(server);
    const { gateway } = await start(backend.url, tls, { "tls/authority.pem": authority.root });
    expect(await gateway.backend("a")).toMatchObject({ is_healthy: true, last_error: null });
    const response = await gateway.chat();
    expect(response.status).toBe(200);
    expect(await response.text()).toContain("over TLS");
  });

  test.each<[what: string, server: Pick<ServerCertificate, "chain" | "key">, tls: Tls | undefined]>([
    ["an authority that the system does not know", byName, undefined],
    ["the same, asked for by its name", byName, { server_name: NAME }],
    ["another authority", byName, { ca: stranger.root, server_name: NAME }],
    ["another name", byName, { ca: authority.root, server_name: `other.${NAME}` }],
    ["not the name in the url", byName, { ca: authority.root }],
    ["a certificate that is over", expired, { ca: authority.root, server_name: NAME }],
    ["a certificate that signs itself", own, { ca: authority.root, server_name: NAME }],
    ["no intermediate", { chain: byName.leaf, key: byName.key }, { ca: authority.root, server_name: NAME }],
  ])("refused: %s", async (_what, server, tls) => {
    const backend = secureBackend(server);
    const { gateway } = await start(backend.url, tls);
    const { is_healthy, last_error } = await gateway.backend("a");
    expect(is_healthy).toBe(false);
    expect(last_error).toMatch(/^the TLS certificate is not accepted \([A-Z_]+\)$/);
    expect((await gateway.chat()).status).toBe(503);
    expect(backend.seen.requests).toBe(0);
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
      gateway.process.logEntries.find(({ msg }) => msg === "an edited file could not be followed"),
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
