// Who gets a page, and who gets JSON.

import { expect, test } from "bun:test";
import { prefersHtml } from "./welcome.ts";

test.each([
  ["text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"],
  ["text/html"],
  ["TEXT/HTML; charset=utf-8"],
  ["application/json;q=0.5, text/html"],
  ["application/json, text/html"],
])("a page for %s", (accept) => expect(prefersHtml(accept)).toBe(true));

test.each([
  [""],
  ["*/*"],
  ["application/json"],
  ["application/json, text/plain, */*"],
  ["application/json, text/html;q=0.9"],
  ["text/html;q=0"],
  ["text/html;q=x"],
  ["text/htmlx"],
])("JSON for '%s'", (accept) => expect(prefersHtml(accept)).toBe(false));
