import { describe, expect, test } from "bun:test";
import type { GatewayError } from "../errors/gateway-error.ts";
import { checkLink, openHosts } from "./links.ts";

const OPEN = openHosts(["images", "*.example.internal", "10.20.0.0/16", "fd00:1::/32", "192.168.7.7"]);

function refusal(url: string, open = {}): string | undefined {
  try {
    checkLink(url, "image_url", open);
    return undefined;
  } catch (error) {
    expect(error).toMatchObject({ name: "GatewayError", status: 400, param: "image_url" });
    return (error as GatewayError).message;
  }
}

describe("a link that is handed on", () => {
  test.each([
    "https://example.com/a.png",
    "HTTPS://EXAMPLE.com",
    "http://example.com:8080/a b.png?x=@y",
    "https://bücher.example/ü",
    "http://8.8.8.8/a",
    "http://134744072/",
    "https://[2606:4700::1111]/a",
    "https://no-such-name.example.com/",
  ])("%s may be", (url) => expect(refusal(url)).toBeUndefined());

  test.each([
    ["http://127.1/", "local, private or reserved"],
    ["http://[::ffff:a00:1]/", "local, private or reserved"],
    ["http://images/", "local, private or reserved"],
    ["http://a.example.internal/", "local, private or reserved"],
    ["https://user:sekret@example.com/", "credentials"],
    ["https://example.com:6379/", undefined],
    ["https://example.com:25/", "port 25"],
    ["gs://bucket/a.png", "http or https"],
    ["file:///etc/passwd", "http or https"],
    ["a.png", "http or https"],
    ["https:example.com/a.png", "begins with"],
    ["https://example.com\\@10.0.0.1/", "begins with"],
    ["\thttps://example.com/", "begins with"],
    [`https://example.com/${"a".repeat(8192)}`, "http or https"],
  ])("%s: %s", (url, message) => {
    const told = refusal(url);
    if (message === undefined) expect(told).toBeUndefined();
    else expect(told).toContain(message);
    expect(told ?? "").not.toContain("sekret");
  });
});

describe("hosts that the operator opened", () => {
  test.each([
    "http://images:8080/a.png",
    "http://IMAGES./a.png",
    "http://cat.example.internal/",
    "http://10.20.255.1/",
    "http://0x0a140001/",
    "http://[::ffff:10.20.0.1]/",
    "http://[fd00:1::7]/",
    "http://192.168.7.7:9000/",
    "https://example.com/",
  ])("%s may be handed on", (url) => expect(refusal(url, OPEN)).toBeUndefined());

  test.each([
    "http://images2/",
    "http://example.internal/",
    "http://xexample.internal/",
    "http://cat.example.internal.local/",
    "http://10.21.0.1/",
    "http://[fd00:2::7]/",
    "http://192.168.7.8/",
    "http://127.0.0.1/",
    "http://localhost/",
  ])("%s may not", (url) => expect(refusal(url, OPEN)).toContain("local, private or reserved"));

  test("keep the other rules", () => {
    expect(refusal("http://images:22/", OPEN)).toContain("port 22");
    expect(refusal("http://user@images/", OPEN)).toContain("credentials");
    expect(refusal("ftp://images/", OPEN)).toContain("http or https");
  });
});
