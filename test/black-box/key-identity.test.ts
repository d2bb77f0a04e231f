// Who a key is: what belongs to it stays with it, and goes with it.

import { describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import type { Gateway } from "../support/gateway.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();

type Keys = NonNullable<NonNullable<ConfigDocument["api_keys"]>["keys"]>;

const X = "sekret-of-tenant-x";
const Y = "sekret-of-tenant-y";

function configOf(keys: Keys, more: ConfigDocument = {}): ConfigDocument {
  return {
    backends: [{ name: "b", url: backend.url, models: ["m"] }],
    response_cache: { enabled: true },
    api_keys: { mode: "blocking", keys },
    ...more,
  };
}

const as = (key: string): RequestInit => ({ headers: { authorization: `Bearer ${key}` } });

async function cacheDecision(gateway: Gateway, key: string): Promise<string | null> {
  const response = await gateway.chat({ temperature: 0 }, as(key));
  expect(response.status).toBe(200);
  await response.text();
  return response.headers.get("x-cache");
}

async function responseId(gateway: Gateway, key: string): Promise<string> {
  const response = await gateway.post("/v1/responses", { model: "m", input: "remember" }, as(key));
  return ((await response.json()) as { id: string }).id;
}

async function continued(gateway: Gateway, key: string, previous_response_id: string): Promise<number> {
  const response = await gateway.post("/v1/responses", { model: "m", input: "go on", previous_response_id }, as(key));
  await response.text();
  return response.status;
}

/** The names of the keys of all requests so far, as the access log tells them. */
async function namesInLog(gateway: Gateway, count: number): Promise<unknown[]> {
  const names = () => gateway.printed.logEntries.filter(({ key }) => key !== undefined).map(({ key }) => key);
  await waitFor(`${count} lines of the access log`, () => names().length >= count);
  return names();
}

const setKeys = (gateway: Gateway, keys: Keys) =>
  new AdminClient(gateway).ok("PUT", "/admin/config/api_keys", { mode: "blocking", keys });

describe("a key without id", () => {
  test("does not inherit what belongs to the one that stood before it in the list", async () => {
    await using gateway = await startGateway({ config: configOf([{ key: X }, { key: Y }]) });
    expect(await cacheDecision(gateway, X)).toBe("MISS");
    expect(await cacheDecision(gateway, X)).toBe("HIT");
    const id = await responseId(gateway, X);
    expect(await continued(gateway, X, id)).toBe(200);

    await setKeys(gateway, [{ key: Y }]);
    expect(await cacheDecision(gateway, Y)).toBe("MISS");
    expect(await continued(gateway, Y, id)).not.toBe(200);
    expect((await gateway.chat({}, as(X))).status).toBe(401);

    const back = { mode: "blocking", keys: [{ key: Y }, { key: X }] };
    const refused = await new AdminClient(gateway).send("PUT", "/admin/config/api_keys", { body: back });
    expect([refused.status, refused.text]).toEqual([
      400,
      expect.stringContaining("was revoked and is never valid again"),
    ]);
  });

  test("is another one with another secret: nobody reaches what the old one owned", async () => {
    await using gateway = await startGateway({ config: configOf([{ key: X }]) });
    expect(await cacheDecision(gateway, X)).toBe("MISS");
    const id = await responseId(gateway, X);
    await setKeys(gateway, [{ key: Y }]);
    expect(await cacheDecision(gateway, Y)).toBe("MISS");
    expect(await continued(gateway, Y, id)).not.toBe(200);
  });

  test("keeps its own limit when another key goes", async () => {
    const limited = { key: Y, rate_limit: 1 };
    await using gateway = await startGateway({ config: configOf([{ key: X }, limited]) });
    await setKeys(gateway, [limited]);
    expect((await gateway.chat({}, as(Y))).status).toBe(200);
    expect((await gateway.chat({}, as(Y))).status).toBe(429);
  });

  test("has one short name in every process of a data folder, and another in another folder", async () => {
    const folder = { server: { data_dir: "shared" } };
    await using gateway = await startGateway({ config: configOf([{ key: X }, { key: Y }], folder) });
    const shared = { server: { data_dir: `${gateway.folder}/shared` } };
    await using sibling = await startGateway({ config: configOf([{ key: Y }], shared) });
    await using stranger = await startGateway({ config: configOf([{ key: Y }]) });
    await Promise.all([gateway, sibling, stranger].map((each) => each.chat({}, as(Y))));
    const [name] = await namesInLog(gateway, 1);
    expect(name).toMatch(/^key-[0-9a-f]{10}$/);
    expect(await namesInLog(sibling, 1)).toEqual([name]);
    expect(await namesInLog(stranger, 1)).not.toEqual([name]);
    await gateway.restart();
    await gateway.chat({}, as(Y));
    expect(await namesInLog(gateway, 1)).toEqual([name]);
  });

  test("where the data folder cannot be written, it is named all the same, and one warning says for how long", async () => {
    await using gateway = await startGateway({
      config: configOf([{ key: X }, { key: Y }], { server: { data_dir: "occupied/data" } }),
      files: { occupied: "a file is no folder" },
    });
    for (const key of [X, X, Y]) await gateway.chat({}, as(key));
    const [first, second, other] = await namesInLog(gateway, 3);
    expect(first).toBe(second as string);
    expect(other).not.toBe(first);
    const warnings = gateway.printed.logEntries.filter(({ msg }) => /API keys without an id/.test(String(msg)));
    expect(warnings).toHaveLength(1);
  });
});

test("an id stays the owner when the secret is changed", async () => {
  await using gateway = await startGateway({ config: configOf([{ key: X, id: "team" }]) });
  expect(await cacheDecision(gateway, X)).toBe("MISS");
  const id = await responseId(gateway, X);
  await setKeys(gateway, [{ key: Y, id: "team" }]);
  expect(await cacheDecision(gateway, Y)).toBe("HIT");
  expect(await continued(gateway, Y, id)).toBe(200);
});

test("an organisation, a user and a key of one name are three owners; keys of one organisation are one", async () => {
  const keys: Keys = [
    { key: X, id: "same" },
    { key: Y, id: "u", user_id: "same" },
    { key: "sekret-of-organisation", id: "o", organization_id: "same" },
    { key: "sekret-of-organisation-2", id: "o2", organization_id: "same", user_id: "same" },
  ];
  await using gateway = await startGateway({ config: configOf(keys, { api_keys: { keys } }) });
  for (const { key } of keys.slice(0, 3)) expect([key, await cacheDecision(gateway, key)]).toEqual([key, "MISS"]);
  expect(await cacheDecision(gateway, "sekret-of-organisation-2")).toBe("HIT");
  expect((await gateway.chat({ temperature: 0 })).headers.get("x-cache")).toBe("MISS");
});
