// Section acp: ids of servers, spellings in the environment, secrets, and what only the file may say.

import { describe, expect, test } from "bun:test";
import { diffDocuments } from "../change/diff.ts";
import { draftChange, withoutFileOnlyFields } from "../change/draft.ts";
import { maskSecrets } from "../change/mask.ts";
import { compileDocument } from "../compile/compile.ts";
import { applyOverrides } from "../compile/environment.ts";
import { withDefaults } from "../schema/defaults.ts";
import type { Mapping } from "../values/values.ts";
import { documentSchema } from "./registry.ts";

const SECRET = "sekret-token";
const SERVER = { command: "server", env: { TOKEN: SECRET } };

function problemsOf(acp: unknown): string[] {
  return compileDocument({ acp }, {}).problems.map(({ path, message }) => `${path.join(".")}: ${message}`);
}

test("the defaults are those of the specification", () => {
  expect(documentSchema.parse({}).acp).toEqual({
    enabled: true,
    max_concurrent: 10,
    idle_timeout: 3_600_000,
    storage: "memory",
    storage_path: "./data/acp/sessions",
    max_turns: 50,
    permissions: {
      read: "allow",
      edit: "ask",
      delete: "ask",
      move: "ask",
      search: "allow",
      execute: "ask",
      think: "allow",
      fetch: "ask",
      switch_mode: "ask",
      other: "ask",
    },
    mcp: { max_connections: 5, allowed_servers: [], spawn_timeout: 10_000, servers: {} },
  });
});

describe("the id of a server", () => {
  test.each(["a", "7", "files", "a.b-c_d", "A1", "x".repeat(128)])("may be %s", (id) => {
    expect(problemsOf({ mcp: { servers: { [id]: SERVER }, allowed_servers: [id] } })).toEqual([]);
  });

  test.each(["", "-a", "a-", "_a", "a.", "a__b", "a b", "é", "a/b", "x".repeat(129)])("may not be %p", (id) => {
    expect(problemsOf({ mcp: { servers: { [id]: SERVER } } })).not.toEqual([]);
    expect(problemsOf({ mcp: { allowed_servers: [id] } })).not.toEqual([]);
  });
});

test.each([
  [{ idle_timeout: "0s" }, "acp.idle_timeout"],
  [{ max_concurrent: 0 }, "acp.max_concurrent"],
  [{ storage: "redis" }, "acp.storage"],
  [{ permissions: { execute: "yes" } }, "acp.permissions.execute"],
  [{ permissions: { fly: "ask" } }, "acp.permissions"],
  [{ mcp: { servers: { a: {} } } }, "acp.mcp.servers.a.command"],
  [{ mcp: { servers: { a: { command: "x", env: { "A=B": "c" } } } } }, "acp.mcp.servers.a.env"],
])("%j is told at %s", (section, place) => {
  const problems = problemsOf(section);
  expect(problems).toHaveLength(1);
  expect(problems[0]).toStartWith(place);
});

test("a second is a legal time", () => {
  expect(compileDocument({ acp: { idle_timeout: "1s" } }, {}).settings?.acp.idle_timeout).toBe(1_000);
});

test("the environment says all of it; ids and variables keep their letter case", () => {
  const { document, problems } = applyOverrides(
    {},
    {
      SIGNALBOX_ACP__ENABLED: "false",
      SIGNALBOX_ACP__PERMISSIONS__EXECUTE: "deny",
      SIGNALBOX_ACP__MCP__ALLOWED_SERVERS: "Files,other",
      SIGNALBOX_ACP__MCP__SERVERS__Files__COMMAND: "server",
      SIGNALBOX_ACP__MCP__SERVERS__Files__ARGS: "-v,--root",
      SIGNALBOX_ACP__MCP__SERVERS__Files__ENV__Token: SECRET,
    },
  );
  expect(problems).toEqual([]);
  expect(document).toEqual({
    acp: {
      enabled: false,
      permissions: { execute: "deny" },
      mcp: {
        allowed_servers: ["Files", "other"],
        servers: { Files: { command: "server", args: ["-v", "--root"], env: { Token: SECRET } } },
      },
    },
  });
});

test("values of env are masked in views and differences", () => {
  const document = { acp: { mcp: { servers: { a: SERVER } } } };
  expect(JSON.stringify(maskSecrets(document))).not.toContain(SECRET);
  expect(maskSecrets(document)).toEqual({
    acp: { mcp: { servers: { a: { command: "server", env: { TOKEN: "********" } } } } },
  });
  expect(JSON.stringify(diffDocuments({}, document))).not.toContain(SECRET);
  const other = { acp: { mcp: { servers: { a: { ...SERVER, env: { TOKEN: `${SECRET}-2` } } } } } };
  const changes = diffDocuments(document, other);
  expect(changes).toMatchObject([{ field: "mcp.servers.a.env.TOKEN", from: "********", to: "********" }]);
});

describe("through the admin API", () => {
  const document: Mapping = { acp: { max_turns: 7, permissions: { edit: "deny" }, mcp: { servers: { a: SERVER } } } };
  const base = { document, effective: withDefaults(document) };
  const draft = (acp: unknown, mode: "merge" | "replace") => draftChange(base, { sections: { acp } as Mapping, mode });
  const refusedFields = (acp: unknown, mode: "merge" | "replace" = "merge") => {
    const result = draft(acp, mode);
    return !result.ok && result.error.kind === "validation"
      ? result.error.problems.map(({ path }) => path.join("."))
      : undefined;
  };

  test.each([
    [{ mcp: { servers: { evil: { command: "sh" } } } }, "acp.mcp.servers"],
    [{ mcp: { servers: { a: { command: "sh" } } } }, "acp.mcp.servers"],
    [{ mcp: { servers: { a: { args: ["-c"] } } } }, "acp.mcp.servers"],
    [{ mcp: { servers: { a: { env: { TOKEN: "other" } } } } }, "acp.mcp.servers"],
    [{ mcp: { servers: { a: { env: { LD_PRELOAD: "/tmp/x" } } } } }, "acp.mcp.servers"],
    [{ mcp: { servers: { a: null } } }, "acp.mcp.servers"],
    [{ permissions: { execute: "allow" } }, "acp.permissions"],
  ])("%j is refused", (patch, field) => {
    expect(refusedFields(patch)).toEqual([field]);
    expect(refusedFields({ max_turns: 9, ...patch }, "replace")).toEqual([field]);
  });

  test("other fields change, and what only the file says stays", () => {
    for (const [acp, mode] of [
      [{ max_turns: 9 }, "merge"],
      [{ max_turns: 9 }, "replace"],
      [{ max_turns: 9, mcp: { max_connections: 2 } }, "replace"],
    ] as const) {
      const result = draft(acp, mode);
      expect(result.ok && result.value.document.acp).toMatchObject({
        max_turns: 9,
        permissions: { edit: "deny" },
        mcp: { servers: { a: SERVER } },
      });
    }
  });

  test("a view may be sent back as it was read, with its defaults and masks", () => {
    const view = maskSecrets(base.effective.acp, ["acp"]);
    const result = draft(view, "replace");
    expect(result.ok && (result.value.document.acp as Mapping).mcp).toMatchObject({ servers: { a: SERVER } });
    expect(refusedFields(maskSecrets(document.acp, ["acp"]))).toBeUndefined();
  });

  test("nothing in place of the section leaves what only the file says", () => {
    const result = draft(null, "replace");
    expect(result.ok && result.value.document.acp).toEqual({
      permissions: { edit: "deny" },
      mcp: { servers: { a: SERVER } },
    });
  });

  test("a rollback brings none of it back", () => {
    expect(withoutFileOnlyFields(document.acp, "acp")).toEqual({ max_turns: 7, mcp: {} });
  });
});
