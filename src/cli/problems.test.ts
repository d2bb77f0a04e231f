// Rendering of configuration problems.

import { expect, test } from "bun:test";
import { renderProblems } from "./problems.ts";

test("one line per problem, ordered by place, under a headline", () => {
  const text = renderProblems(
    [
      { path: ["retry", "jitter"], message: "expected true or false", variable: "SIGNALBOX_RETRY__JITTER" },
      { path: [], message: "cannot be read: there is no such file", file: "/etc/keys.yaml" },
      { path: ["backends", 0, "url"], message: "is required", file: "/srv/config.yaml", line: 12 },
      { path: ["retry"], message: "expected a mapping", file: "/srv/config.yaml", line: 2 },
    ],
    "/srv/config.yaml",
    "/srv",
  );
  expect(text).toBe(`4 problems in config.yaml:
  config.yaml:2: retry: expected a mapping
  config.yaml:12: backends[0].url: is required
  /etc/keys.yaml: cannot be read: there is no such file
  SIGNALBOX_RETRY__JITTER: retry.jitter: expected true or false
`);
});

test("without a file, and with control characters in a name", () => {
  expect(renderProblems([{ path: ["a"], message: "no", file: "/b\u001b[2J" }], undefined, "/c")).toBe(
    "1 problem in the configuration:\n  /b?[2J: a: no\n",
  );
});
