// Addresses of pages, there and back.

import { expect, test } from "bun:test";
import { linkTo, parseRoute, START_PAGE } from "./route.ts";

test.each([[""], ["#"], ["#/"]])("'%s' is the first page", (hash) => {
  expect(parseRoute(hash)).toMatchObject({ page: START_PAGE, id: undefined });
});

test.each(["plain", "with/slash", "a b?c#d&e=f", "100%", "ünïcödé", "<img src=x onerror=alert(1)>"])(
  "the id %s",
  (id) => {
    const { page, id: found, query } = parseRoute(linkTo("request", id, { model: id }));
    expect({ page, found, model: query.get("model") }).toEqual({ page: "request", found: id, model: id });
  },
);

test("parameters without a value are left out", () => {
  expect(linkTo("requests", undefined, { model: "", backend: undefined, status: "5xx" })).toBe("#/requests?status=5xx");
});

test("what was written by hand and makes no sense is taken as it is", () => {
  expect(parseRoute("#/request/%E0%A4%A").id).toBe("%E0%A4%A");
});
