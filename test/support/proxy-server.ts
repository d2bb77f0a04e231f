// A real nginx or HAProxy, from the packages of the distribution, that lets through what begins with /v1/ and nothing else.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { programPath } from "../../scripts/debian-packages.ts";
import { freePort } from "./free-port.ts";
import { type ServerProgram, startServerProgram } from "./server-program.ts";

interface ProxyKind {
  command(configFile: string): string[];
  config(address: { port: number; gatewayPort: number; folder: string }): string;
}

function nginx(location: (gateway: string) => string): ProxyKind {
  return {
    command: (configFile) => [programPath("nginx"), "-c", configFile, "-e", "stderr"],
    config({ port, gatewayPort, folder }) {
      const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
      return `
daemon off;
master_process off;
pid ${folder}/pid;
error_log stderr crit;
events {}
http {
  access_log off;
  ${paths.map((path) => `${path}_temp_path ${folder}/${path};`).join("\n  ")}
  server {
    listen 127.0.0.1:${port};
    location / { return 403; }
    ${location(`http://127.0.0.1:${gatewayPort}`)}
  }
}
`;
    },
  };
}

function haproxy(more = ""): ProxyKind {
  return {
    command: (configFile) => [programPath("haproxy"), "-f", configFile, "-db"],
    config: ({ port, gatewayPort }) => `
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend public
  bind 127.0.0.1:${port}
  ${more}
  http-request deny unless { path_beg /v1/ }
  default_backend gateway
backend gateway
  server gateway 127.0.0.1:${gatewayPort}
`,
  };
}

export const PROXIES = {
  "nginx, the target as it came": nginx((gateway) => `location /v1/ { proxy_pass ${gateway}; }`),
  "nginx, the path written anew": nginx((gateway) => `location /v1/ { proxy_pass ${gateway}/v1/; }`),
  "nginx, kept connections": nginx(
    (gateway) => `location ^~ /v1/ { proxy_pass ${gateway}; proxy_http_version 1.1; proxy_set_header Connection ""; }`,
  ),
  HAProxy: haproxy(),
  "HAProxy that lets odd requests pass": haproxy("option accept-invalid-http-request"),
} as const satisfies Record<string, ProxyKind>;

export type ProxyName = keyof typeof PROXIES;

export interface ProxyServer extends ServerProgram {
  port: number;
}

/** Resolves when it answers. */
export async function startProxy(name: ProxyName, gatewayPort: number): Promise<ProxyServer> {
  const { command, config } = PROXIES[name];
  const port = await freePort();
  const program = await startServerProgram({
    name,
    prepare(folder) {
      const configFile = join(folder, "proxy.conf");
      writeFileSync(configFile, config({ port, gatewayPort, folder }));
      return command(configFile);
    },
    isReady: async () => (await fetch(`http://127.0.0.1:${port}/v1/models`).catch(() => undefined))?.ok,
  });
  return { port, ...program };
}
