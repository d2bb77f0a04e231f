// Which of several declared paths a target names, compared with the runtime's own matching; and which paths may not stand
// beside each other.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { arrangePaths, fits, readPath } from "./path-pattern.ts";
import { type RequestTarget, serveTargets } from "./request-target.ts";

describe("ambiguity is refused", () => {
  test.each([
    [["/a/{x}", "/a/{y}"]],
    [["/a/{x...}", "/a/{y...}"]],
    [["/a/{x}/b", "/a/b/{x}"]],
    [["/{x...}/b", "/a/{x...}"]],
    [["/{x}/b/c", "/a/{y...}/c"]],
    [["/a/b/{x...}", "/{y...}/c/d"]],
    [["/a/{x}:go", "/a/{y}:go"]],
  ])("%j", (paths) => {
    expect(() => arrangePaths(paths)).toThrow(`a target may name ${paths[0]} as well as ${paths[1]}`);
    expect(() => arrangePaths(paths.toReversed())).toThrow("a target may name");
  });

  test("and so is a path that is there twice", () => {
    expect(() => arrangePaths(["/a", "/b", "/a"])).toThrow("a path is there twice");
  });

  test.each([
    [["/a", "/a/{x}"]],
    [["/a/b", "/a/{x}"]],
    [["/a/{x}", "/a/{x...}"]],
    [["/a/{x...}", "/a/{x...}/b"]],
    [["/a/{x}/b", "/a/{x...}", "/a/b/b"]],
    [["/a/{x}/b", "/b/{x}/b", "/c/b/{x}"]],
    [["/a/{x...}", "/a/{x...}:go", "/a/{x...}:stop", "/a/{x}:go", "/a/{x...}/b"]],
  ])("%j is clear", (paths) => {
    expect(() => arrangePaths(paths)).not.toThrow();
  });
});

test.each([
  ["a"],
  ["/a/{x}/{x}"],
  ["/{x...}/a/{y...}"],
  ["/a{x}"],
  ["/{}"],
  ["/{x-y}"],
  ["/a/:x"],
  ["/a/*"],
  ["/a b"],
  ["/a/b:go"],
  ["/a/{x}:go/b"],
  ["/a/{x}:"],
  ["/a/{x}:a:b"],
  ["/%61"],
])("%s is no path", (path) => {
  expect(() => readPath(path)).toThrow("is no path of an endpoint");
});

const text = fc.constantFrom("a", "b", "1", "-");
const path = fc
  .array(fc.oneof(text, fc.constantFrom("{}", "{}", "{...}")), { minLength: 1, maxLength: 4 })
  .map((segments) => `/${segments.map((segment, index) => segment.replace("{", `{p${index}`)).join("/")}`)
  .filter((declared) => declared.split("...").length < 3);
const value = fc.oneof(text, fc.constantFrom("a/b", "ü", "a b", "%", "...", ".well"));

test("of the paths that a target fits, the most specific one gets it, with what the client wrote", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(path, { maxLength: 8 }),
      fc.array(fc.array(value, { maxLength: 5 })),
      async (all, targets) => {
        // As many of them as can stand beside each other.
        const paths = all.filter((_, index) => isClear(all.slice(0, index + 1)));
        fc.pre(isClear(paths));
        const server = Bun.serve({
          port: 0,
          hostname: "127.0.0.1",
          ...serveTargets({ paths, handle: async (_request, _server, target) => Response.json(target) }),
        });
        try {
          for (const segments of targets.filter(({ length }) => length > 0)) {
            const target = `/${segments.map(encodeURIComponent).join("/")}`;
            const answer = await fetch(`http://127.0.0.1:${server.port}${target}`);
            const { route, parameters = {}, flaw } = (await answer.json()) as RequestTarget;
            const fitting = paths.filter((declared) => isFitting(declared, segments));
            if (fitting.length === 0) expect({ target, route }).toEqual({ target, route: undefined });
            else {
              expect({ target, route, flaw }).toEqual({ target, route: mostSpecific(fitting), flaw: undefined });
              expect(filledIn(route as string, parameters)).toBe(`/${segments.join("/")}`);
            }
          }
        } finally {
          await server.stop(true);
        }
      },
    ),
    { numRuns: 60 },
  );
});

function isClear(paths: readonly string[]): boolean {
  try {
    arrangePaths(paths);
    return true;
  } catch {
    return false;
  }
}

/** As a regular expression says it, whose segments may contain slashes themselves. */
function isFitting(declared: string, segments: readonly string[]): boolean {
  const pattern = declared
    .slice(1)
    .split("/")
    .map((segment) =>
      segment.endsWith("...}") ? "[^\n]+(?:\n[^\n]+)*" : segment.startsWith("{") ? "[^\n]+" : RegExp.escape(segment),
    );
  return new RegExp(`^${pattern.join("\n")}$`).test(segments.join("\n"));
}

const SAMPLES = samples(5);

function samples(longest: number): string[][] {
  const shorter = longest === 1 ? [[]] : [[], ...samples(longest - 1)];
  return shorter.flatMap((segments) => ["a", "b", "1", "-", "other"].map((last) => [...segments, last]));
}

/** The one that the fewest targets fit. */
function mostSpecific(fitting: readonly string[]): string {
  const width = (declared: string) => SAMPLES.filter((segments) => isFitting(declared, segments)).length;
  return fitting.toSorted((one, other) => width(one) - width(other))[0] as string;
}

function filledIn(declared: string, parameters: Readonly<Record<string, string>>): string {
  return declared.replace(/\{(\w+)(?:\.\.\.)?\}/g, (_, name: string) => parameters[name] as string);
}

test("a text fits the paths that a target of this text would name", () => {
  fc.assert(
    fc.property(path, fc.array(text, { minLength: 1, maxLength: 5 }), (declared, segments) => {
      expect(fits(readPath(declared), `/${segments.join("/")}`)).toBe(isFitting(declared, segments));
    }),
  );
});
