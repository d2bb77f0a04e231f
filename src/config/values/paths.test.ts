// Where things are written.

import { expect, test } from "bun:test";
import { resolveDataPath } from "./paths.ts";

test.each([
  ["./data/metrics.db", "./data", "/etc/signalbox/data/metrics.db"],
  ["./data/metrics.db", "/var/lib/signalbox", "/var/lib/signalbox/metrics.db"],
  ["data/a/b", "~/state", "/home/ann/state/a/b"],
  ["/tmp/metrics.db", "/var/lib/signalbox", "/tmp/metrics.db"],
  ["other/metrics.db", "/var/lib/signalbox", "/etc/signalbox/other/metrics.db"],
])("%s with data_dir %s", (path, dataDir, resolved) => {
  expect(resolveDataPath(path, { dataDir, baseDir: "/etc/signalbox", home: "/home/ann" })).toBe(resolved);
});
