// Bad bodies for every admin endpoint that takes one: a clear refusal, no secret, no version. And many writers at once.

import { describe, expect, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

const WITH_BODY: [method: string, path: string][] = [
  ["PUT", "/admin/config/retry"],
  ["PATCH", "/admin/config/retry"],
  ["PUT", "/admin/config/backends"],
  ["POST", "/admin/config/validate"],
  ["POST", "/admin/config/apply"],
  ["POST", "/admin/config/export"],
  ["POST", "/admin/config/import"],
  ["POST", "/admin/config/rollback/1"],
  ["POST", "/admin/backends"],
  ["PUT", "/admin/backends/a"],
  ["PUT", "/admin/backends/a/weight"],
  ["PUT", "/admin/backends/a/models"],
];

const nested = (open: string, close: string) => open.repeat(10_000) + close.repeat(10_000);

const BAD: [what: string, body: string | Uint8Array, message: RegExp][] = [
  ["cut off", '{"retry": "sekret', /not valid JSON/],
  ["not JSON", "sekret: yes", /not valid JSON/],
  ["lists, 10,000 levels deep", nested("[", "]"), /nested too deeply/],
  ["mappings, 10,000 levels deep", `${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`, /nested too deeply/],
  ["a key that is given twice", '{"max_attempts": 1,\n "max_attempts": 2}', /line 2: this key is given twice/],
  ["a key that is given twice, in other letters", '{"weight": 1, "\\u0077eight": 2}', /given twice/],
  ["invalid UTF-8", new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), /not valid UTF-8/],
  ["half a character", '{"max_delay": "\\ud800"}', /max_delay: is not valid Unicode/],
  ["a number without end", '{"max_attempts": 1e999}', /max_attempts: is a number that is too large/],
  ["a number with too many digits", `{"max_attempts": ${"9".repeat(400)}}`, /max_attempts: is a number/],
  ["a prototype", '{"__proto__": {"max_attempts": 1}}', /__proto__/],
];

describe("bad bodies", () => {
  const started = bed.gateway({
    config: { backends: [{ name: "a", type: "demo", models: ["m"], api_key: "sekret-a" }] },
    awaitHealth: false,
  });

  test.each(BAD)("%s", async (_what, body, message) => {
    const admin = new AdminClient(await started);
    for (const [method, path] of WITH_BODY) {
      const error = await admin.refused(400, method, path, body);
      expect([method, path, error.message]).toEqual([method, path, expect.stringMatching(message)]);
    }
    expect(await admin.version()).toBe(1);
  });

  test("more than the limit is 413, compressed ones are not taken", async () => {
    const admin = new AdminClient(await started);
    for (const [method, path] of WITH_BODY) {
      await admin.refused(413, method, path, `"${"x".repeat(8 * 2 ** 20)}"`);
      const zipped = Bun.gzipSync(Buffer.from("{}"));
      const error = await admin.refused(400, method, path, zipped, { headers: { "Content-Encoding": "gzip" } });
      expect(error.message).toContain("Content-Encoding");
    }
    expect(await admin.version()).toBe(1);
  });

  test("bodies that are missing or no object", async () => {
    const admin = new AdminClient(await started);
    const isOptional = (path: string) => /apply|export|rollback/.test(path);
    for (const [method, path] of WITH_BODY) {
      if (!isOptional(path)) await admin.refused(400, method, path, "");
      for (const body of ["null", "5", '"sekret"', "true"]) await admin.refused(400, method, path, body);
    }
    expect(await admin.version()).toBe(1);
  });
});

describe("many writers at once", () => {
  test("no change is lost, and versions have no gap", async () => {
    const gateway = await bed.gateway({ config: { backends: [] } });
    const admin = new AdminClient(gateway);
    const names = Array.from({ length: 50 }, (_, index) => `b${index}`);
    const created = await Promise.all(
      names.map((name) => admin.ok("POST", "/admin/backends", { name, type: "demo", models: ["m"] })),
    );
    const versions = created.map(({ version }) => version as number).sort((one, other) => one - other);
    expect(versions).toEqual(names.map((_, index) => index + 2));
    expect((await gateway.backends()).map(({ name }) => name).sort()).toEqual([...names].sort());

    // Different fields of one section, and weights of all backends, in between one another.
    await Promise.all([
      ...names.map((name, index) => admin.ok("PUT", `/admin/backends/${name}/weight`, { weight: index })),
      ...names.map((_, index) => admin.ok("PATCH", "/admin/config/model_aliases", { [`alias${index}`]: "m" })),
    ]);
    const weights = (await gateway.backends()).map(({ name, weight }) => [name, weight]);
    expect(Object.fromEntries(weights)).toEqual(Object.fromEntries(names.map((name, index) => [name, index])));
    const { config } = await admin.get("/admin/config/model_aliases");
    expect(Object.keys(config as object)).toHaveLength(50);
    // One weight was the default already.
    expect(await admin.version()).toBe(1 + 50 + 49 + 50);
    const { history } = await admin.get("/admin/config/history?limit=100");
    expect((history as { version: number }[]).map(({ version }) => version)).toEqual(
      Array.from({ length: 100 }, (_, index) => 150 - index),
    );
  });

  test("of writers that name the same version, one wins", async () => {
    const gateway = await bed.gateway({ config: { backends: [] } });
    const admin = new AdminClient(gateway);
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        admin.send("PATCH", "/admin/config/retry", { body: { max_attempts: index + 4, version: 1 } }),
      ),
    );
    const won = answers.filter(({ status }) => status === 200);
    expect(won).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(49);
    expect(await admin.version()).toBe(2);
    expect((await admin.get("/admin/config/retry")).config).toEqual(won[0]?.body.current);
  });
});
