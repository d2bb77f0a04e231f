// Whose address counts behind proxies, and which addresses are one client.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { clientGroup, createClientAddressReader } from "./client-address.ts";

const reader = createClientAddressReader(["10.0.0.0/8", "2001:db8:1::/48"]);

describe("client address", () => {
  const rows: [what: string, peer: string | undefined, header: string | null, expected: string | undefined][] = [
    ["no header", "192.0.2.1", null, "192.0.2.1"],
    ["mapped peer", "::ffff:192.0.2.1", null, "192.0.2.1"],
    ["untrusted peer", "192.0.2.1", "203.0.113.9", "192.0.2.1"],
    ["trusted peer", "10.0.0.1", "203.0.113.9", "203.0.113.9"],
    ["trusted mapped peer", "::ffff:10.0.0.1", "203.0.113.9", "203.0.113.9"],
    ["trusted IPv6 peer", "2001:db8:1::7", "2001:db8:2::0009", "2001:db8:2::9"],
    ["what the client wrote is left of its address", "10.0.0.1", "1.1.1.1, 203.0.113.9", "203.0.113.9"],
    ["a forged proxy", "10.0.0.1", "1.1.1.1, 10.0.0.9, 203.0.113.9", "203.0.113.9"],
    ["chain of proxies", "10.0.0.1", "1.1.1.1,203.0.113.9 , 10.0.0.3,10.0.0.2", "203.0.113.9"],
    ["all are proxies", "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
    ["malformed at once", "10.0.0.1", "203.0.113.9, unknown", "10.0.0.1"],
    ["malformed behind a proxy", "10.0.0.1", "203.0.113.9, x, 10.0.0.2", "10.0.0.2"],
    ["empty elements", "10.0.0.1", ", 203.0.113.9, ,", "203.0.113.9"],
    ["empty header", "10.0.0.1", "", "10.0.0.1"],
    ["with ports", "10.0.0.1", "203.0.113.9:4711, 10.0.0.2:80", "203.0.113.9"],
    ["IPv6 with port", "10.0.0.1", "[2001:db8:2::9]:4711", "2001:db8:2::9"],
    ["IPv6 in brackets", "10.0.0.1", "[2001:db8:2::9]", "2001:db8:2::9"],
    ["octal is no address", "10.0.0.1", "010.0.0.1", "10.0.0.1"],
    ["unix peer is not believed", undefined, "203.0.113.9", undefined],
    ["too long", "10.0.0.1", `203.0.113.9${" ".repeat(5000)},10.0.0.2`, "10.0.0.2"],
    ["too long at once", "10.0.0.1", "1".repeat(10_000), "10.0.0.1"],
    ["too many hops", "10.0.0.1", `203.0.113.9${",10.0.0.2".repeat(40)}`, "10.0.0.2"],
  ];
  test.each(rows)("%s", (_what, peer, header, expected) => {
    expect(reader.read(peer, header)).toBe(expected as string);
  });

  test("peers on a unix socket are trusted only by name", () => {
    expect(createClientAddressReader(["unix:"]).read(undefined, "203.0.113.9")).toBe("203.0.113.9");
    expect(createClientAddressReader(["unix:"]).read("", "203.0.113.9")).toBe("203.0.113.9");
    expect(createClientAddressReader(["unix:"]).read("192.0.2.1", "203.0.113.9")).toBe("192.0.2.1");
  });

  test("property: nothing that a client writes changes who it is", () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.array(fc.constantFrom("10.0.0.2", "10.9.9.9"), { maxLength: 5 }),
        (written, proxies) => {
          const header = [written, "203.0.113.9", ...proxies].join(", ");
          expect(reader.read("10.0.0.1", header)).toBe("203.0.113.9");
          expect(reader.read("203.0.113.9", written)).toBe("203.0.113.9");
        },
      ),
    );
  });
});

describe("what counts as one client", () => {
  const rows: [address: string, group: string][] = [
    ["192.0.2.1", "192.0.2.1"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2600:1:2:3::1", "2600:1:2:3::/64"],
    ["2600:1:2:3:ffff::", "2600:1:2:3::/64"],
    ["2600:1:2:4::1", "2600:1:2:4::/64"],
    ["::1", "::1"],
    ["fe80::1", "fe80::1"],
    ["fd00::5", "fd00::5"],
    ["64:ff9b::c000:201", "64:ff9b::c000:201"],
  ];
  test.each(rows)("%s: %s", (address, group) => {
    expect(clientGroup(address)).toBe(group);
  });
});
