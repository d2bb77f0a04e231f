import { describe, expect, test } from "bun:test";
import { Target } from "./target.ts";

const at = (rootUrl: string, socketPath?: string) => new Target({ rootUrl, socketPath }, undefined);

test("an address says where to connect, and what the head says of it", () => {
  expect(at("http://host").address).toEqual({ hostname: "host", port: 80 });
  expect(at("https://host:8443/x").address).toMatchObject({ hostname: "host", port: 8443 });
  expect(at("https://host").address).toMatchObject({
    port: 443,
    tls: { rejectUnauthorized: true, servername: "host" },
  });
  expect(at("https://[::1]").address).toMatchObject({ hostname: "::1", tls: { servername: "" } });
  expect(at("http://[::1]:1").address).toEqual({ hostname: "::1", port: 1 });
  expect(at("http://localhost", "/run/x").address).toEqual({ unix: "/run/x" });
  expect([at("http://host:80"), at("http://[::1]:81")].map(({ hostLine }) => hostLine)).toEqual([
    "host: host\r\n",
    "host: [::1]:81\r\n",
  ]);
});

test("backends share connections where address, socket and TLS are the same", () => {
  const same = [at("http://h/a"), at("http://h:80/b"), at("http://user@h")].map(({ origin }) => origin);
  expect(new Set(same).size).toBe(1);
  const ca = new Target({ rootUrl: "https://h", socketPath: undefined }, { ca: "x" });
  const others = [at("http://h"), at("https://h"), at("http://h:81"), at("http://h", "/run/x"), ca];
  expect(new Set(others.map(({ origin }) => origin)).size).toBe(others.length);
});

test("credentials in an address are sent as they were meant", () => {
  const sent = (rootUrl: string) => /Basic (.*)\r\n/.exec(at(rootUrl).authorizationLine)?.[1];
  expect(atob(sent("http://a%40b:c%3Ad@h") ?? "")).toBe("a@b:c:d");
  expect(atob(sent("http://100%:x@h") ?? "")).toBe("100%:x");
  expect(sent("http://h")).toBeUndefined();
});

describe("paths", () => {
  const cases: [string, string, string][] = [
    ["http://h", "/v1/x?a=b", "/v1/x?a=b"],
    ["http://h/pre", "/v1/x", "/pre/v1/x"],
    ["http://h", "/a b/ü?c d#e", "/a%20b/%C3%BC?c%20d"],
    ["http://h/pre", "/x/../y", "/pre/y"],
    ["http://h", "//other/x", "//other/x"],
  ];
  test.each(cases)("%s and %j", (root, path, expected) => {
    const target = at(root);
    expect([target.path(path), target.path(path)]).toEqual([expected, expected]);
  });

  test.each(["", "x", "@other/", ":1/", "?a", "/a\r\nb", "/a\tb", "/\0", "/\x7f"])("%j is none", (path) => {
    expect(() => at("http://h").path(path)).toThrow("its path is none");
  });

  test("are remembered, but not without end", () => {
    const target = at("http://h");
    for (let number = 0; number < 100; number++) expect(target.path(`/${number}`)).toBe(`/${number}`);
    expect(target.path("/1")).toBe("/1");
  });
});
