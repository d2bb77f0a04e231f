import { expect, test } from "bun:test";
import { withoutCredentials } from "./without-credentials.ts";

test("credentials are cut up to the last @ before the path", () => {
  expect(withoutCredentials("http://user:pass@host/v1")).toBe("http://host/v1");
  expect(withoutCredentials("http://user:p@ss@host/v1")).toBe("http://host/v1");
  expect(withoutCredentials("http://host/a@b")).toBe("http://host/a@b");
});

test("what the URL standard reads as another host is not cut", () => {
  for (const end of ["/", "\\", "?", "#"]) {
    const url = `http://other${end}@host`;
    expect(new URL(url).host).toBe("other");
    expect(withoutCredentials(url)).toBe(url);
  }
});
