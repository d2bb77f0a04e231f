// Sites that may be found, and how search engines are told of them.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { siteFilter, withSiteOperators, wordCount } from "./domains.ts";

describe("siteFilter", () => {
  const cases: [rule: string, url: string, matches: boolean][] = [
    ["example.com", "https://example.com/", true],
    ["example.com", "https://docs.example.com/page", true],
    ["example.com", "https://EXAMPLE.com./page", true],
    ["example.com", "https://notexample.com/", false],
    ["example.com", "https://example.com.evil.test/", false],
    ["docs.example.com", "https://example.com/", false],
    ["https://example.com", "http://example.com/a", true],
    ["*.example.com", "https://a.example.com/", true],
    ["Example.COM/blog", "https://example.com/blog", true],
    ["example.com/blog", "https://example.com/blog/post", true],
    ["example.com/blog", "https://example.com/blogs", false],
    ["example.com/blog", "https://example.com/", false],
    ["example.com/a*", "https://example.com/abc", false],
    ["example.com/a/*", "https://example.com/a/b", true],
    ["example.com/", "https://example.com/x", true],
    ["", "https://example.com/", false],
  ];
  test.each(cases)("%p and %p: %p", (rule, url, isMatch) => {
    expect(siteFilter({ allowedDomains: [rule] })(url)).toBe(isMatch);
    expect(siteFilter({ blockedDomains: [rule] })(url)).toBe(!isMatch);
  });

  test("nothing is left out without rules, except what is no address", () => {
    expect(siteFilter({})("https://example.com/")).toBe(true);
    expect(siteFilter({ allowedDomains: [], blockedDomains: [] })("https://example.com/")).toBe(true);
    expect(siteFilter({})("no address")).toBe(false);
  });
});

describe("withSiteOperators", () => {
  test("names sites behind the query", () => {
    expect(withSiteOperators("q", {}, 100, 10)).toBe("q");
    expect(withSiteOperators("q", { allowedDomains: ["a.com"] }, 100, 10)).toBe("q site:a.com");
    expect(withSiteOperators("q", { allowedDomains: ["a.com", "b.com/x"] }, 100, 10)).toBe(
      "q (site:a.com OR site:b.com/x)",
    );
    expect(withSiteOperators("q", { blockedDomains: ["a.com", "b.com"] }, 100, 10)).toBe("q -site:a.com -site:b.com");
  });

  test("what is no site cannot become another operator", () => {
    expect(withSiteOperators("q", { allowedDomains: ["a.com) OR (b", 'a"b', "ä.de"] }, 100, 10)).toBe("q");
  });

  test("property: stays within the limits, and begins with the query", () => {
    const domain = fc.domain();
    fc.assert(
      fc.property(
        fc.array(domain, { maxLength: 40 }),
        fc.array(domain, { maxLength: 40 }),
        fc.stringMatching(/^[a-z]{1,20}( [a-z]{1,20}){0,8}$/),
        (allowedDomains, blockedDomains, query) => {
          const text = withSiteOperators(query, { allowedDomains, blockedDomains }, 400, 32);
          expect(text.startsWith(query)).toBe(true);
          expect(text.length).toBeLessThanOrEqual(400);
          expect(wordCount(text)).toBeLessThanOrEqual(32);
        },
      ),
    );
  });
});
