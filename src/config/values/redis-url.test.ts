// Which URLs lead to a Redis server, and how Bun's client takes them.

import { expect, test } from "bun:test";
import { readRedisUrl } from "./redis-url.ts";

test.each([
  ["redis://127.0.0.1", "redis://127.0.0.1", undefined, undefined],
  ["redis://:pw@host:6380/3", "redis://:pw@host:6380/3", undefined, undefined],
  ["rediss://user:p%40w@[::1]:1/", "rediss://user:p%40w@[::1]:1/", undefined, undefined],
  ["unix:/run/redis.sock", "redis+unix:///run/redis.sock", undefined, "/run/redis.sock"],
  ["unix:///run/redis.sock?db=2", "redis+unix:///run/redis.sock", 2, "/run/redis.sock"],
  ["redis+unix:///run/redis.sock", "redis+unix:///run/redis.sock", undefined, "/run/redis.sock"],
  ["redis+unix://:pw@/r.sock?db=9", "redis+unix://:pw@localhost/r.sock", 9, "/r.sock"],
  ["redis+unix://u:pw@localhost/r.sock", "redis+unix://u:pw@localhost/r.sock", undefined, "/r.sock"],
])("%s", (text, url, database, socketPath) => {
  expect(readRedisUrl(text)).toEqual({ url, database, socketPath } as ReturnType<typeof readRedisUrl>);
});

test.each([
  "",
  "redis://",
  "http://host",
  "redis://host/a",
  "redis://host?x=1",
  "redis://ho st",
  "unix:relative",
  "unix:/a b",
  "redis+unix://host/path",
  "redis://host:port",
  "redis://a@b@c",
])("%p is none", (text) => {
  expect(readRedisUrl(text)).toBeUndefined();
});
