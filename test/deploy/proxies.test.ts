// The snippets for nginx and Caddy, in the real programs and in front of a real gateway: streams go on at once, and what is
// for operators is not forwarded.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { programPath } from "../../scripts/debian-packages.ts";
import { filesSection } from "../../src/config/sections/files.ts";
import { createAuthority } from "../support/certificates.ts";
import { freePort } from "../support/free-port.ts";
import type { Gateway } from "../support/gateway.ts";
import { chatEvents, eventStream } from "../support/openai-answers.ts";
import { startServerProgram } from "../support/server-program.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor, within } from "../support/wait-for.ts";
import { read, runProgram } from "./repository.ts";

const NAME = "gateway.example.com";
const bed = createTestBed();
const backend = bed.backend({ models: ["m"] });
const folder = mkdtempSync(join(tmpdir(), "signalbox-deploy-"));
const authority = createAuthority();
let gateway: Gateway;

beforeAll(async () => {
  const { chain, key } = authority.issue([NAME]);
  writeFileSync(join(folder, "fullchain.pem"), chain);
  writeFileSync(join(folder, "privkey.pem"), key);
  gateway = await bed.gateway({
    config: {
      server: { trusted_proxies: ["127.0.0.1"], allowed_hosts: [NAME] },
      backends: [{ name: "engine", type: "vllm", url: backend.url }],
    },
  });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The text with one thing changed, which must be there. */
function changed(text: string, from: string | RegExp, to: string): string {
  const result = text.replaceAll(typeof from === "string" ? from : new RegExp(from, "g"), to);
  expect(result).not.toBe(text);
  return result;
}

function nginxConfig(port: number, gatewayPort: number): string {
  let site = read("deploy/nginx/signalbox.conf");
  site = changed(site, "listen 443 ssl", `listen 127.0.0.1:${port} ssl`);
  site = changed(site, "  listen [::]:443 ssl http2;\n", "");
  site = changed(site, "127.0.0.1:8080", `127.0.0.1:${gatewayPort}`);
  site = changed(site, "/etc/nginx/tls", folder);
  site = changed(site, "/etc/nginx/signalbox-proxy.conf", join(folder, "signalbox-proxy.conf"));
  writeFileSync(join(folder, "signalbox-proxy.conf"), read("deploy/nginx/signalbox-proxy.conf"));
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  return `daemon off;
master_process off;
pid ${folder}/nginx.pid;
error_log stderr warn;
events {}
http {
access_log off;
${temporary.map((path) => `${path}_temp_path ${folder}/${path};`).join("\n")}
${site}
}
`;
}

function caddyConfig(port: number, gatewayPort: number): string {
  let site = read("deploy/caddy/Caddyfile");
  site = changed(
    site,
    `\n${NAME} {\n`,
    `\nhttps://${NAME}:${port} {\n\tbind 127.0.0.1\n\ttls ${folder}/fullchain.pem ${folder}/privkey.pem\n`,
  );
  site = changed(site, "127.0.0.1:8080", `127.0.0.1:${gatewayPort}`);
  return `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${site}`;
}

const PROXIES = {
  nginx: {
    config: nginxConfig,
    check: (file: string) => [programPath("nginx"), "-t", "-c", file, "-e", "stderr"],
    run: (file: string) => [programPath("nginx"), "-c", file, "-e", "stderr"],
    isRight: "test is successful",
  },
  caddy: {
    config: caddyConfig,
    check: (file: string) => [programPath("caddy"), "validate", "--config", file, "--adapter", "caddyfile"],
    run: (file: string) => [programPath("caddy"), "run", "--config", file, "--adapter", "caddyfile"],
    isRight: "Valid configuration",
  },
};

test.each(Object.keys(PROXIES) as (keyof typeof PROXIES)[])("%s takes it, and works with it", async (name) => {
  const { config, check, run, isRight } = PROXIES[name];
  const port = await freePort();
  const file = join(folder, `${name}.conf`);
  writeFileSync(file, config(port, gateway.port));
  const { exitCode, output } = await runProgram(check(file));
  expect(output).toContain(isRight);
  expect(output).not.toContain("[warn]");
  expect(exitCode).toBe(0);

  const ask = (path: string, init: BunFetchRequestInit = {}) =>
    fetch(`https://127.0.0.1:${port}${path}`, {
      ...init,
      headers: { Host: NAME, "X-Forwarded-For": "203.0.113.9" },
      tls: { ca: authority.root, serverName: NAME },
    });
  const proxy = await startServerProgram({
    name,
    prepare: () => run(file),
    isReady: async () => (await ask("/healthz").catch(() => undefined))?.ok,
  });
  try {
    expect((await ask("/v1/models")).status).toBe(200);
    for (const path of ["/admin/config", "/metrics", "/dashboard", "/openapi.json", "/"]) {
      expect({ path, status: (await ask(path)).status }).toEqual({ path, status: 404 });
    }
    await streamsAtOnce(ask);
    await waitFor("the log names the proxy's peer, not whom the client made up", () =>
      gateway.printed.logEntries.some(({ path, client }) => path === "/v1/chat/completions" && client === "127.0.0.1"),
    );
    expect(gateway.printed.logEntries.filter(({ client }) => client === "203.0.113.9")).toEqual([]);
  } finally {
    await proxy.stop();
  }
});

test("a file of the largest size fits through both, with the form around it", () => {
  const largest = filesSection.schema.parse({}).max_file_size;
  const [, nginx] = /client_max_body_size (\d+)m;/.exec(read("deploy/nginx/signalbox.conf")) ?? [];
  const [, caddy] = /max_size (\d+)MiB\n/.exec(read("deploy/caddy/Caddyfile")) ?? [];
  for (const mebibytes of [nginx, caddy]) expect(Number(mebibytes) * 1024 ** 2).toBeGreaterThan(largest + 64 * 1024);
});

/** The first event is there while the backend still holds back the second. */
async function streamsAtOnce(ask: (path: string, init: BunFetchRequestInit) => Promise<Response>): Promise<void> {
  const { promise: goOn, resolve: letGoOn } = Promise.withResolvers<void>();
  backend.queue({
    ...eventStream(chatEvents(["first", "second"])),
    framing: "chunked",
    beforeChunk: (index) => (index === 2 ? goOn : undefined),
  });
  const body = JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "x" }] });
  const answer = await within("the answer begins", ask("/v1/chat/completions", { method: "POST", body }), 10_000);
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    while (!text.includes("first")) {
      const { value, done } = await within("the first event comes", reader.read(), 10_000);
      if (done) break;
      text += decoder.decode(value, { stream: true });
    }
    expect(text).toContain("first");
    expect(text).not.toContain("second");
  } finally {
    letGoOn();
  }
  for (let part = await reader.read(); !part.done; part = await reader.read()) text += decoder.decode(part.value);
  expect(text).toContain("[DONE]");
}
