// Which requests of web pages are refused, and which pages may read answers.

import { describe, expect, test } from "bun:test";
import { GatewayError } from "../errors/gateway-error.ts";
import { createWebPageRules, type PageRequest, type WebPageSettings } from "./web-pages.ts";

const TCP = { port: 8080 };
const UNIX = { port: undefined };

function setUp(more: Partial<WebPageSettings> = {}) {
  const settings = { allowedHosts: [], allowedOrigins: [], boundTo: ["127.0.0.1:8080"], keysRequired: false, ...more };
  const rules = createWebPageRules(settings);
  return (headers: Record<string, string>, listener: { port?: number | undefined } = TCP) => {
    const answer: Record<string, string> = {};
    try {
      return outcome(rules.judge(new Headers({ host: "localhost:8080", ...headers }), listener, answer), answer);
    } catch (error) {
      if (error instanceof GatewayError) return error.status;
      throw error;
    }
  };
}

function outcome(page: PageRequest | undefined, answer: Record<string, string>): string {
  const verdict = page === undefined ? "no page" : page.refusal !== undefined ? "refused" : `read by ${page.reader}`;
  return answer.Vary === undefined ? verdict : `${verdict}, varies`;
}

describe("on loopback without keys", () => {
  const judge = setUp();

  test("clients that are no browsers notice nothing", () => {
    for (const host of ["localhost:8080", "127.0.0.1:8080", "[::1]:8080", "host.docker.internal:8080"]) {
      expect(judge({ host })).toBe("no page");
    }
  });

  test("a Host that leads here from elsewhere is refused, on a unix socket it is not", () => {
    for (const host of ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "0.0.0.0:8080", "192.0.2.1"]) {
      expect([host, judge({ host })]).toEqual([host, "refused"]);
      expect([host, judge({ host, origin: `http://${host}` })]).toEqual([host, "refused, varies"]);
      expect(judge({ host }, UNIX)).toBe("no page");
    }
  });

  test("one that names no host is 400, on a unix socket too", () => {
    for (const host of ["", "a/b", "a@b", "h, h"]) expect([judge({ host }), judge({ host }, UNIX)]).toEqual([400, 400]);
  });

  test("every Host is looked at, also after a good one", () => {
    expect(["localhost", "evil.example", "localhost", "a/b", "localhost"].map((host) => judge({ host }))).toEqual([
      "no page",
      "refused",
      "no page",
      400,
      "no page",
    ]);
  });

  test("pages from elsewhere are refused", () => {
    for (const origin of ["https://evil.example", "null", "http://localhost.evil.example", "file://"]) {
      expect([origin, judge({ origin })]).toEqual([origin, "refused, varies"]);
    }
    expect(judge({ "sec-fetch-site": "cross-site" })).toBe("refused");
    for (const site of ["same-origin", "same-site", "none"]) expect(judge({ "sec-fetch-site": site })).toBe("no page");
  });

  test("pages of this machine may ask and read, on whatever port they are", () => {
    for (const origin of ["http://localhost:8080", "http://localhost:3000", "http://127.0.0.1:5173"]) {
      expect(judge({ origin, "sec-fetch-site": "cross-site" })).toBe(`read by ${origin}, varies`);
    }
  });
});

test("local pages are local to their own machine only", () => {
  const judge = setUp({ boundTo: ["0.0.0.0:8080"] });
  expect(judge({ host: "gateway.example", origin: "http://localhost:3000" })).toBe("refused, varies");
  expect(judge({ host: "gateway.example", origin: "http://gateway.example" })).toStartWith("read by");
  expect(judge({ host: "gateway.example" })).toBe("no page");
});

test("where keys are required, pages may ask with the key that they were given, and not read", () => {
  const judge = setUp({ keysRequired: true });
  expect(judge({ host: "gateway.example" })).toBe("no page");
  expect(judge({ "sec-fetch-site": "cross-site" })).toBe("no page");
  expect(judge({ origin: "https://app.example" })).toBe("read by undefined, varies");
});

test("allowed_hosts are allowed besides local names, and hold where keys are required too", () => {
  for (const keysRequired of [false, true]) {
    const judge = setUp({ keysRequired, allowedHosts: ["Gateway.example", "*.example.org"] });
    for (const host of ["gateway.example:443", "a.example.org", "localhost"]) {
      expect([host, judge({ host })]).toEqual([host, "no page"]);
    }
    for (const host of ["example.org", "evil.example", "example.org.evil.example"]) {
      expect([host, judge({ host })]).toEqual([host, "refused"]);
    }
  }
  expect(setUp({ allowedHosts: ["*"] })({ host: "anything" })).toBe("no page");
});

test("the host of a bound address is allowed", () => {
  const judge = setUp({ allowedHosts: ["a.example"], boundTo: ["10.1.2.3:80", "[fd00::1]:80"] });
  expect([judge({ host: "10.1.2.3" }), judge({ host: "[fd00::1]:80" }), judge({ host: "10.1.2.4" })]).toEqual([
    "no page",
    "no page",
    "refused",
  ]);
});

test("allowed_origins may ask and read; every answer varies by origin then", () => {
  const judge = setUp({ allowedOrigins: ["https://app.example", "https://*.preview.example", "tauri://app"] });
  for (const origin of ["https://app.example", "https://x.preview.example", "tauri://app"]) {
    expect(judge({ origin })).toBe(`read by ${origin}, varies`);
  }
  for (const origin of ["http://app.example", "https://app.example:8443", "https://preview.example", "null"]) {
    expect([origin, judge({ origin })]).toEqual([origin, "refused, varies"]);
  }
  expect(judge({})).toBe("no page, varies");
  expect(setUp({ allowedOrigins: ["*"] })({ origin: "null" })).toBe("read by null, varies");
});
