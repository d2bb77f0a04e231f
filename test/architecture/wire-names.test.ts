// Names of the wire stay where the wire is: rooms that keep facts name them as the rest of the code does.

import { expect, test } from "bun:test";
import { sourceFiles, sourceText } from "./source-files.ts";

/** Rooms that speak a wire of their own: an API, a protocol, a file or a page. */
const SPEAKING = [
  ...["config", "protocols", "admin", "api", "openapi", "dashboard"],
  // Their requests and answers go to vendors, editors, tool servers, collectors and model servers.
  ...[
    "acp",
    "agent",
    "mcp",
    "otlp",
    "web-search",
    "object-storage",
    "upstream",
    "demo",
    "discovery",
    "models",
    "vendor-batches",
  ],
];

/** Files of other rooms that write or read one, with what it is. */
const FILES: Readonly<Record<string, string>> = {
  "budgets/refusal.ts": "the body of a refusal",
  "backup/manifest.ts": "the manifest of a backup",
  "generation/thinking-parser.ts": "settings of a model, as the configuration has them",
  "health/checker.ts": "fields of a log line",
  "hooks/builtin/registry.ts": "what the configuration calls them",
  "recording/data-set.ts": "lines of data sets",
  "cli/replay.ts": "a replay of the admin API",
  "pipeline/mid-stream.ts": "fields of a log line",
  "server/access-log.ts": "the access log",
  "rate-limit/decision.ts": "the body of a refusal",
  "stats/collector.ts": "the snapshot of the statistics",
  "stats/costs.ts": "the snapshot of the statistics",
  "stats/written-stats.ts": "the snapshot of the statistics",
};

/** A member of an object or of a type. */
const MEMBER = /^\s+(?:readonly )?([a-z]+(?:_[a-z0-9]+)+)\??:/gm;

test("no room that keeps facts names a member as the wire does", async () => {
  const found: string[] = [];
  const named = new Set<string>();
  for (const file of sourceFiles) {
    if (SPEAKING.includes(file.split("/")[0] as string)) continue;
    const members = [...(await sourceText(file)).matchAll(MEMBER)].map(([, name]) => name);
    if (members.length === 0) continue;
    named.add(file);
    if (FILES[file] === undefined) found.push(`${file}: ${members.join(", ")}`);
  }
  expect(found).toEqual([]);
  expect(Object.keys(FILES).filter((file) => !named.has(file))).toEqual([]);
});
