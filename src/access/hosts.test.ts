// Hosts: which are none, which are this machine, and which pages are of the same origin.

import { describe, expect, test } from "bun:test";
import { hostName, isHost, isLocalHost, isLocalOrigin, isLoopback, isOnLoopback, isSameOrigin } from "./hosts.ts";

test.each([
  ["localhost"],
  ["LOCALHOST:8080"],
  ["gateway_1"],
  ["a.b-c.example."],
  ["127.0.0.1:1"],
  ["a:"],
  ["[::1]:8080"],
  ["[::ffff:127.0.0.1]"],
  ["a:65535"],
])("%j names a host", (host) => expect(isHost(host)).toBe(true));

test.each([
  [""],
  [" "],
  ["a b"],
  ["a\tb"],
  ["a/b"],
  ["a@b"],
  ["a?b"],
  ["a#b"],
  ["a\\b"],
  ["a,b"],
  ["h, h"],
  [", h"],
  ["a;b"],
  ["a%2f"],
  ["a%00"],
  ["é"],
  ["[::1"],
  ["::1"],
  ["[::1]x"],
  ["[x]"],
  ["[fe80::1%25eth0]"],
  [":80"],
  ["a:b"],
  ["a:-1"],
  ["a:80:90"],
  ["a:65536"],
  ["a:999999"],
  [".a"],
  ["a'b"],
  ["a<b"],
  ["http://a"],
])("%j names none", (host) => expect(isHost(host)).toBe(false));

test("the name is without port and brackets, in small letters", () => {
  expect(["A.b:80", "[::1]:8080", "[::1]", "a:", "a"].map(hostName)).toEqual(["a.b", "::1", "::1", "a", "a"]);
});

describe("this machine", () => {
  test.each([
    ["localhost"],
    ["localhost:1"],
    ["app.localhost"],
    ["127.0.0.1:80"],
    ["127.9.9.9"],
    ["[::1]:80"],
    ["[::1]"],
  ])("%s", (host) => expect(isLocalHost(host)).toBe(true));
  test.each([
    [null],
    [""],
    ["evil.example"],
    ["127.0.0.1.evil.example"],
    ["localhost.evil.example"],
    ["0.0.0.0"],
    ["[::]"],
  ])("not %j", (host) => expect(isLocalHost(host)).toBe(false));

  test("addresses", () => {
    expect(["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"].every(isLoopback)).toBe(true);
    expect(["128.0.0.1", "::2", "10.0.0.1", "1127.0.0.1"].some(isLoopback)).toBe(false);
  });

  test("bind addresses", () => {
    expect(isOnLoopback(["127.0.0.1:80", "[::1]:80", "localhost:0", "unix:/run/x.sock"])).toBe(true);
    for (const other of ["0.0.0.0:80", "[::]:80", "10.0.0.1:80", "gateway:80"]) {
      expect(isOnLoopback(["127.0.0.1:80", other])).toBe(false);
    }
  });
});

test("a page is of the same origin when host and port are the same", () => {
  expect(isSameOrigin("http://h:8080", "h:8080")).toBe(true);
  expect(isSameOrigin("http://h:8080", "H:8080")).toBe(true);
  expect(isSameOrigin("https://h", "h")).toBe(true);
  for (const origin of ["http://h", "http://h:81", "http://evil.example", "null", "", "h:8080", "file://"]) {
    expect([origin, isSameOrigin(origin, "h:8080")]).toEqual([origin, false]);
  }
  expect(isSameOrigin("http://h", null)).toBe(false);
  expect(isSameOrigin("null", "")).toBe(false);
});

test("a page is local when its host is", () => {
  expect(
    ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:1", "tauri://localhost"].every(isLocalOrigin),
  ).toBe(true);
  expect(["null", "", "http://evil.example", "file://", "http://localhost.evil.example"].some(isLocalOrigin)).toBe(
    false,
  );
});
