// Which client speaks to backends, and when the log says so.

import { expect, test } from "bun:test";
import { settingsOf } from "../../test/support/serve-routes.ts";
import { clientInUse } from "../upstream/transport.ts";
import { createWayToBackends } from "./way-to-backends.ts";

const PROXY = "http://127.0.0.1:3128";

test.each<[client: "sockets" | "fetch" | undefined, env: Record<string, string>, inUse: string, lines: number]>([
  [undefined, {}, "sockets", 0],
  ["fetch", {}, "fetch", 0],
  [undefined, { HTTPS_PROXY: PROXY }, "fetch", 1],
  ["sockets", { HTTP_PROXY: PROXY }, "fetch", 1],
  ["sockets", { http_proxy: PROXY, https_proxy: PROXY }, "fetch", 1],
  ["fetch", { https_proxy: PROXY }, "fetch", 0],
  ["sockets", { HTTPS_PROXY: "", NO_PROXY: "*" }, "sockets", 0],
])("%s in %j: %s", (client, env, inUse, lines) => {
  const settings = settingsOf({ server: client === undefined ? {} : { upstream_client: client } });
  expect(clientInUse(settings.server.upstream_client, env)).toBe(inUse as "sockets");
  const logged: unknown[] = [];
  createWayToBackends(settings, env, {
    info: (_fields: object, message: string) => void logged.push(message),
  } as never);
  expect(logged).toHaveLength(lines);
  for (const line of logged) expect(line).not.toContain(PROXY);
});
