// Reload classes, as the specification lists them.

import { expect, test } from "bun:test";
import {
  changesReloadClass,
  estimateImpact,
  fieldReloadClass,
  reloadCapabilities,
  sectionNames,
  sectionReloadClass,
} from "./capability.ts";
import { diffDocuments } from "./diff.ts";

test("the 15 sections of the specification and their classes", () => {
  const { sections, extensions } = sectionNames();
  const classes = Object.groupBy(sections, sectionReloadClass);
  expect(sections).toHaveLength(15);
  expect(classes.immediate?.sort()).toEqual(
    ["logging", "rate_limiting", "circuit_breaker", "retry", "global_prompts", "api_keys"].sort(),
  );
  expect(classes.gradual?.sort()).toEqual(
    ["backends", "timeouts", "health_checks", "fallback", "files", "metrics", "admin", "routing"].sort(),
  );
  expect(classes.requires_restart).toEqual(["server"]);
  expect(extensions).toContain("tracing");
});

test("patterns of the status", () => {
  const { immediate_update, gradual_update, requires_restart } = reloadCapabilities();
  expect(immediate_update.items).toEqual(expect.arrayContaining(["logging.level", "rate_limiting.*"]));
  expect(gradual_update.items).toEqual(expect.arrayContaining(["backends.*", "server.shutdown_timeout"]));
  expect(requires_restart.items).toEqual(
    expect.arrayContaining(["server.bind_address", "server.workers", "metrics.persistence.path"]),
  );
});

test("docs/configuration.md names what takes effect at once, and what after a restart", async () => {
  const page = await Bun.file(`${import.meta.dir}/../../../docs/configuration.md`).text();
  const [, atOnce = ""] = /^\| (.*) \| at once, for every new request \|$/m.exec(page) ?? [];
  const { sections, extensions } = sectionNames();
  const immediate = [...sections, ...extensions].filter((name) => sectionReloadClass(name) === "immediate");
  expect([...atOnce.matchAll(/`(\w+)`/g)].map(([, name]) => name).sort()).toEqual(immediate.sort());
  const [, restart = ""] = /^\| (.*) \| after a restart;.*\|$/m.exec(page) ?? [];
  const named = [...restart.matchAll(/`([\w.]*?)(\w+)`/g)].map(([, , last]) => last);
  const items = reloadCapabilities().requires_restart.items.map((item) => item.slice(item.lastIndexOf(".") + 1));
  expect(named.sort()).toEqual(items.sort());
});

test("fields", () => {
  expect(fieldReloadClass(["server", "bind_address", 0])).toBe("requires_restart");
  expect(fieldReloadClass(["server", "shutdown_timeout"])).toBe("gradual");
  expect(fieldReloadClass(["metrics", "persistence", "path"])).toBe("requires_restart");
  expect(fieldReloadClass(["metrics", "persistence", "retention_days"])).toBe("gradual");
  expect(changesReloadClass([{ path: ["retry", "max_attempts"] }])).toBe("immediate");
});

test("the impact names what happens to backends and what waits", () => {
  const impact = estimateImpact(
    diffDocuments(
      { backends: [{ name: "old" }], server: { workers: 1 } },
      { backends: [{ name: "new" }], server: { workers: 2 } },
    ),
  );
  expect(impact).toContain("Added backends (1)");
  expect(impact).toContain("Removed backends (1)");
  expect(impact).toContain("Only after a restart: server.workers.");
});
