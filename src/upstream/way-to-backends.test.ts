// Which client speaks to backends, when the log says so, and whose authorities have changed.

import { expect, test } from "bun:test";
import { settingsOf } from "../../test/support/serve-routes.ts";
import { systemClock } from "../lib/clock.ts";
import { silentLogger } from "../logging/logger.ts";
import { clientInUse } from "./transport.ts";
import { createWayToBackends } from "./way-to-backends.ts";

const PROXY = "http://127.0.0.1:3128";

const holding = (files: Record<string, string>) => ({ authorities: new Map(Object.entries(files)) });

test.each<
  [client: "sockets" | "fetch" | undefined, env: Record<string, string>, inUse: "sockets" | "fetch", lines: number]
>([
  [undefined, {}, "sockets", 0],
  ["fetch", {}, "fetch", 0],
  [undefined, { HTTPS_PROXY: PROXY }, "fetch", 1],
  ["sockets", { HTTP_PROXY: PROXY }, "fetch", 1],
  ["sockets", { http_proxy: PROXY, https_proxy: PROXY }, "fetch", 1],
  ["fetch", { https_proxy: PROXY }, "fetch", 0],
  ["sockets", { HTTPS_PROXY: "", NO_PROXY: "*" }, "sockets", 0],
])("%s in %j: %s", (client, env, inUse, lines) => {
  const settings = settingsOf({ server: client === undefined ? {} : { upstream_client: client } });
  expect(clientInUse(settings.server.upstream_client, env)).toBe(inUse);
  const logged: unknown[] = [];
  const log = { info: (...line: unknown[]) => void logged.push(line.at(-1)), warn() {} };
  createWayToBackends({ settings, attachments: holding({}) }, { env, baseDir: "/", clock: systemClock, log });
  expect(logged).toHaveLength(lines);
  for (const line of logged) expect(line).not.toContain(PROXY);
});

test("backends are named whose file holds something else", () => {
  const backend = (name: string, tls?: object) => ({ name, url: "https://10.0.0.1", ...(tls && { tls }) });
  const settings = settingsOf({
    backends: [
      backend("plain"),
      backend("a", { ca: "a.pem" }),
      backend("b", { ca: "b.pem" }),
      backend("again", { ca: "a.pem" }),
      backend("text", { ca: "-----BEGIN CERTIFICATE-----" }),
    ],
  });
  const attachments = holding({ "a.pem": "1", "b.pem": "1" });
  const way = createWayToBackends(
    { settings, attachments },
    { env: {}, baseDir: "/", clock: systemClock, log: silentLogger() },
  );
  way.follow({ settings, attachments });
  expect(way.reassessed).toEqual([]);
  const changed = holding({ "a.pem": "2", "b.pem": "1" });
  way.follow({ settings, attachments: changed });
  expect(way.reassessed).toEqual(["a", "again"]);
  way.follow({ settings, attachments: changed });
  expect(way.reassessed).toEqual([]);
});
