// Ports that other processes have, and what a probe leaves behind.

import { expect, test } from "bun:test";
import { listen, type Server } from "./listener.ts";
import { probePort } from "./port-probe.ts";

const served = { fetch: async () => new Response("here") };

async function opened(address: string, sharesPort = false): Promise<{ server: Server; address: string }> {
  const result = await listen(address, "/", served, undefined, sharesPort);
  if (!result.ok) throw new Error(result.message);
  return result;
}

test("a port that another listener has is told, also one that shares it and one on all addresses", async () => {
  for (const [theirs, ours] of [
    ["127.0.0.1", "127.0.0.1"],
    ["0.0.0.0", "127.0.0.1"],
    ["127.0.0.1", "0.0.0.0"],
    ["127.0.0.1", "localhost"],
  ] as const) {
    for (const sharesPort of [false, true]) {
      const { server } = await opened(`${theirs}:0`, sharesPort);
      expect(await probePort(`${ours}:${server.port}`)).toContain(`${server.port}: another process uses it. Stop that`);
      expect(await (await fetch(`http://127.0.0.1:${server.port}/`)).text()).toBe("here");
      await server.stop(true);
    }
  }
});

test("a free port is still free behind the probe, however often", async () => {
  const { server, address } = await opened("127.0.0.1:0");
  await (await fetch(server.url)).text(); // its connection rests in the kernel for a while
  await server.stop(true);
  for (let round = 0; round < 3; round++) expect(await probePort(address)).toBeUndefined();
  const again = await opened(address);
  await again.server.stop(true);
});

test("an address of another machine is told", async () => {
  expect(await probePort("192.0.2.1:8080")).toBe(
    "server.bind_address: cannot listen on 192.0.2.1:8080: this machine has no such address.",
  );
});
