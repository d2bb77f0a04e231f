import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { canonicalAddress, isLocalName, isPublicAddress } from "./public-address.ts";

const REFUSED: readonly [what: string, address: string][] = [
  ["unspecified", "0.0.0.0"],
  ["this network", "0.1.2.3"],
  ["private A, first", "10.0.0.0"],
  ["private A, last", "10.255.255.255"],
  ["CGNAT, first", "100.64.0.0"],
  ["CGNAT, last", "100.127.255.255"],
  ["loopback", "127.0.0.1"],
  ["loopback, last", "127.255.255.255"],
  ["link-local, cloud metadata", "169.254.169.254"],
  ["private B, first", "172.16.0.0"],
  ["private B, last", "172.31.255.255"],
  ["host agent of Azure", "168.63.129.16"],
  ["host agent of Azure behind NAT64", "64:ff9b::a83f:8110"],
  ["protocol assignments", "192.0.0.8"],
  ["documentation 1", "192.0.2.1"],
  ["AS112", "192.31.196.1"],
  ["AMT", "192.52.193.1"],
  ["6to4 relay", "192.88.99.1"],
  ["private C", "192.168.1.1"],
  ["direct delegation AS112", "192.175.48.1"],
  ["benchmarking, first", "198.18.0.1"],
  ["benchmarking, last", "198.19.255.255"],
  ["documentation 2", "198.51.100.1"],
  ["documentation 3", "203.0.113.9"],
  ["multicast", "224.0.0.1"],
  ["multicast, last", "239.255.255.255"],
  ["reserved", "240.0.0.1"],
  ["broadcast", "255.255.255.255"],
  ["v6 unspecified", "::"],
  ["v6 loopback", "::1"],
  ["v6 loopback, written out", "0:0:0:0:0:0:0:1"],
  ["v4-mapped loopback", "::ffff:127.0.0.1"],
  ["v4-mapped loopback, hex", "::ffff:7f00:1"],
  ["v4-mapped private", "::ffff:10.1.2.3"],
  ["v4-mapped metadata", "::ffff:a9fe:a9fe"],
  ["v4-compatible loopback", "::127.0.0.1"],
  ["v4-compatible, hex", "::7f00:1"],
  ["v4-compatible of a public address", "::808:808"],
  ["v4-translated (SIIT)", "::ffff:0:127.0.0.1"],
  ["NAT64 loopback", "64:ff9b::7f00:1"],
  ["NAT64 private, dotted", "64:ff9b::10.0.0.1"],
  ["NAT64 local prefix", "64:ff9b:1::808:808"],
  ["NAT64 with other bits", "64:ff9b:0:1::808:808"],
  ["6to4 of loopback", "2002:7f00:1::"],
  ["6to4 of a public address", "2002:808:808::1"],
  ["Teredo", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
  ["benchmarking v6", "2001:2::1"],
  ["ORCHID", "2001:10::1"],
  ["ORCHID v2", "2001:20::1"],
  ["documentation v6", "2001:db8::1"],
  ["documentation v6, new", "3fff::1"],
  ["segment routing", "5f00::1"],
  ["discard", "100::1"],
  ["ULA fc", "fc00::1"],
  ["ULA fd, cloud metadata", "fd00:ec2::254"],
  ["link-local v6", "fe80::1"],
  ["link-local v6, last", "febf::1"],
  ["link-local with a zone", "fe80::1%eth0"],
  ["site-local", "fec0::1"],
  ["multicast v6", "ff02::1"],
  ["never given out", "4000::1"],
  ["ISATAP", "2606:4700::5efe:7f00:1"],
  ["ISATAP, universal bit", "2606:4700::200:5efe:7f00:1"],
  ["a public address with a zone", "2606:4700::1111%1"],
  ["no address", "example.com"],
  ["empty", ""],
  ["short form", "127.1"],
  ["decimal", "2130706433"],
  ["hexadecimal", "0x7f000001"],
  ["octal", "0177.0.0.1"],
  ["octal of a public address", "010.8.8.8"],
  ["five parts", "8.8.8.8.8"],
  ["too large", "8.8.8.256"],
  ["a range", "8.8.8.8/32"],
];

const PUBLIC = [
  "8.8.8.8",
  "9.255.255.255",
  "11.0.0.0",
  "100.63.255.255",
  "100.128.0.0",
  "126.255.255.255",
  "128.0.0.1",
  "169.253.255.255",
  "172.15.255.255",
  "172.32.0.0",
  "198.20.0.1",
  "223.255.255.255",
  "2606:4700:4700::1111",
  "2a00:1450:4001::200e",
  "::ffff:8.8.8.8",
  "64:ff9b::808:808",
];

describe("isPublicAddress", () => {
  test.each(REFUSED)("refuses %s: %s", (_what, address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  test.each(PUBLIC)("accepts %s", (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  const octet = fc.integer({ min: 0, max: 255 });
  const privateV4 = fc.oneof(
    fc.tuple(fc.constantFrom(0, 10, 127), octet, octet, octet),
    fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), octet, octet),
    fc.tuple(fc.constant(192), fc.constant(168), octet, octet),
    fc.tuple(fc.constant(169), fc.constant(254), octet, octet),
    fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), octet, octet),
    fc.tuple(fc.integer({ min: 224, max: 255 }), octet, octet, octet),
  );

  test("no form of a private IPv4 address inside an IPv6 address is public", () => {
    fc.assert(
      fc.property(privateV4, (octets) => {
        const dotted = octets.join(".");
        const hex = Buffer.from(octets)
          .toString("hex")
          .replace(/(.{4})/, "$1:");
        for (const form of [dotted, `::ffff:${dotted}`, `::ffff:${hex}`, `::${hex}`, `::ffff:0:${hex}`]) {
          expect(isPublicAddress(form)).toBe(false);
        }
        for (const form of [`64:ff9b::${hex}`, `64:ff9b:1::${hex}`, `2002:${hex}::`, `2001:0:${hex}::1`]) {
          expect(isPublicAddress(form)).toBe(false);
        }
      }),
    );
  });

  test("only 2000::/3 and the forms of public IPv4 addresses are public IPv6 addresses", () => {
    const parts = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 });
    fc.assert(
      fc.property(parts, (numbers) => {
        const [first = 0, second] = numbers;
        fc.pre(first !== 0 && !(first === 0x64 && second === 0xff9b));
        const isPublic = isPublicAddress(numbers.map((part) => part.toString(16)).join(":"));
        if (first >> 13 !== 1) expect(isPublic).toBe(false);
      }),
    );
  });
});

describe("canonicalAddress", () => {
  test.each([
    ["::ffff:7f00:1", "127.0.0.1"],
    ["0:0:0:0:0:0:0:1", "::1"],
    ["2606:4700:0:0::1111", "2606:4700::1111"],
    ["127.1", undefined],
    ["fe80::1%eth0", undefined],
  ])("%s -> %s", (text, expected) => {
    expect(canonicalAddress(text)).toBe(expected);
  });
});

describe("isLocalName", () => {
  test.each([
    "localhost",
    "LOCALHOST",
    "localhost.",
    "localhost..",
    "a.localhost",
    "localhost.localdomain",
    "localhost6.localdomain6",
    "ip6-localhost",
    "printer.local",
    "metadata.google.internal",
    "metadata",
    "kubernetes.default.svc.cluster.local",
    "router.home.arpa",
    "nas.lan",
    "redis",
  ])("%s is local", (name) => {
    expect(isLocalName(name)).toBe(true);
  });

  test.each(["example.com", "example.com.", "localhost.example.com", "mylocal.example", "xn--bcher-kva.example"])(
    "%s is not",
    (name) => {
      expect(isLocalName(name)).toBe(false);
    },
  );
});
