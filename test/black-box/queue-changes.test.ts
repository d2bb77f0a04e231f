// Changes of the queue by operators: weights and longest waits of classes that there are, and whether it is on.

import { beforeAll, expect, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import type { Gateway } from "../support/gateway.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

const TOKENS = (["viewer", "operator", "admin"] as const).map((role) => ({
  name: role,
  token: `token-of-${role}`,
  role,
}));

let gateway: Gateway;
let as: Record<(typeof TOKENS)[number]["role"], AdminClient>;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      backends: [{ name: "a", type: "demo", models: ["m"] }],
      admin: { auth: { method: "bearer_token", tokens: TOKENS } },
    },
    awaitHealth: false,
  });
  as = Object.fromEntries(
    TOKENS.map(({ role, token }) => [role, new AdminClient(gateway, { Authorization: `Bearer ${token}` })]),
  ) as typeof as;
});

const classes = async () => (await as.viewer.get("/admin/queue")).classes;

const [interactive, byDefault, batch] = [
  { class: "interactive", weight: 10, max_wait_ms: 15_000, waiting: 0 },
  { class: "default", weight: 5, max_wait_ms: 30_000, waiting: 0 },
  { class: "batch", weight: 1, max_wait_ms: 86_400_000, waiting: 0 },
];

test("a dry run says what would change, and changes nothing", async () => {
  const change = { enabled: true, classes: { batch: { weight: 2 } } };
  const said = await as.operator.ok("PATCH", "/admin/queue?dry_run=true", change);
  expect(said.changes).toMatchObject({ enabled: { from: false, to: true } });
  expect(JSON.stringify(said.changes)).toContain('"from":1,"to":2');
  expect(await as.viewer.get("/admin/queue")).toMatchObject({
    enabled: false,
    classes: [interactive, byDefault, batch],
  });
});

test("an operator changes one class, while none is in the file; the others stay", async () => {
  const { version } = await as.operator.ok("PATCH", "/admin/queue", {
    enabled: true,
    classes: { batch: { weight: 2, max_wait: "12h" } },
  });
  expect(await classes()).toEqual([interactive, byDefault, { ...batch, weight: 2, max_wait_ms: 43_200_000 }]);
  await as.operator.ok("PATCH", "/admin/queue", { classes: { batch: { max_wait: null } }, version });
  expect(await classes()).toEqual([interactive, byDefault, { ...batch, weight: 2, max_wait_ms: 30_000 }]);
  expect((await as.viewer.get("/admin/queue")).enabled).toBe(true);
  await as.operator.refused(409, "PATCH", "/admin/queue", { enabled: false, version });
});

test("what is wrong is named by the fields of the request", async () => {
  const refused = async (body: unknown) => (await as.operator.send("PATCH", "/admin/queue", { body })).text;
  expect(await refused({ classes: { batch: { weight: 0 } } })).toContain(
    "classes.batch.weight: must be greater than 0",
  );
  expect(await refused({ classes: { batch: { max_wait: "soon" } } })).toContain(
    "classes.batch.max_wait: expected a dur",
  );
  expect(await refused({ classes: { night: { weight: 1 } } })).toContain(
    "classes.night: is no class of the queue; there are: interactive, default, batch",
  );
  expect(await refused({ classes: { batch: null } })).toContain("classes.batch");
  expect(await refused({ classes: { batch: { share: 1 } } })).toContain("share");
  expect(await refused({ per_backend: { max_concurrent: 4 } })).toContain("per_backend");
});

test("a viewer may not, and an operator changes nothing else of the section", async () => {
  for (const [role, path] of [
    ["viewer", "/admin/queue"],
    ["operator", "/admin/config/admission"],
  ] as const) {
    const answer = await as[role].send("PATCH", path, { body: { enabled: false } });
    expect({ role, status: answer.status }).toEqual({ role, status: 403 });
  }
});

test("the change is in the history and the audit", async () => {
  expect(JSON.stringify(await as.viewer.get("/admin/config/history"))).toContain("classes of the queue");
  expect(JSON.stringify(await as.admin.get("/admin/audit"))).toContain("/admin/queue");
});

test("the OpenAPI document has the header for the class at every endpoint that asks a model", async () => {
  const { paths } = (await (await gateway.fetch("/openapi.json")).json()) as {
    paths: Record<string, Record<string, { tags: string[]; parameters?: { name: string; in: string }[] }>>;
  };
  const generating = Object.values(paths).flatMap((methods) =>
    Object.values(methods).filter(({ tags }) => tags?.includes("Generation")),
  );
  expect(generating.length).toBeGreaterThan(15);
  for (const { parameters } of generating) {
    expect(parameters).toContainEqual(expect.objectContaining({ name: "X-Signalbox-Priority", in: "header" }));
  }
});
