// Proxies of the environment are not asked for addresses of this machine.

import { expect, test } from "bun:test";
import { join } from "node:path";
import { keepLoopbackFromProxies } from "./proxy-environment.ts";

test("exceptions that are set already stay", () => {
  const env: Record<string, string | undefined> = { no_proxy: "intranet" };
  keepLoopbackFromProxies(env);
  expect(env.NO_PROXY).toBe("intranet,127.0.0.1,localhost,::1");
  expect(env.no_proxy).toBe(env.NO_PROXY);
});

test("a backend on this machine is reached although a proxy is set", async () => {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("here") });
  const script = `
    import { keepLoopbackFromProxies } from ${JSON.stringify(join(import.meta.dir, "proxy-environment.ts"))};
    keepLoopbackFromProxies(process.env);
    console.log(await (await fetch(process.argv[1])).text());`;
  const child = Bun.spawn([process.execPath, "-e", script, server.url.href], {
    env: { ...process.env, HTTP_PROXY: "http://127.0.0.1:1", http_proxy: "http://127.0.0.1:1" },
    stdout: "pipe",
  });
  expect(await new Response(child.stdout).text()).toBe("here\n");
  await server.stop(true);
});
