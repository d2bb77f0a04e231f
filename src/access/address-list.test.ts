// Which addresses a list contains, in whatever spelling they come.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createAddressList, normalizeAddress } from "./address-list.ts";

describe("address list", () => {
  const list = createAddressList(["192.0.2.7", "10.0.0.1/8", "2001:db8::/32", "::1", "::ffff:172.16.0.0/108"]);
  const rows: [address: string, isContained: boolean][] = [
    ["192.0.2.7", true],
    ["::ffff:192.0.2.7", true],
    ["::FFFF:c000:207", true],
    ["192.0.2.8", false],
    ["10.255.255.255", true],
    ["11.0.0.0", false],
    ["172.31.255.255", true],
    ["172.32.0.0", false],
    ["2001:db8:ffff::1", true],
    ["2001:db9::", false],
    ["0:0:0:0:0:0:0:1", true],
    ["::2", false],
    ["", false],
    ["no address", false],
    ["10.0.0.1/8", false],
    ["::1/128", false],
  ];
  test.each(rows)("%s: %p", (address, isContained) => {
    expect(list.contains(address)).toBe(isContained);
  });

  test("all of one family, and nothing", () => {
    expect(createAddressList(["0.0.0.0/0"]).contains("255.255.255.255")).toBe(true);
    expect(createAddressList(["0.0.0.0/0"]).contains("::1")).toBe(false);
    expect(createAddressList(["::/0"]).contains("1.2.3.4")).toBe(false);
    expect(createAddressList([]).contains("1.2.3.4")).toBe(false);
    expect(createAddressList([]).isEmpty).toBe(true);
  });

  test("property: an IPv4 range contains exactly the addresses with its first bits", () => {
    const octets = fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 4, maxLength: 4 });
    const bits = (address: readonly number[]) => address.map((octet) => octet.toString(2).padStart(8, "0")).join("");
    fc.assert(
      fc.property(
        octets,
        octets,
        fc.integer({ min: 0, max: 32 }),
        fc.integer({ min: 0, max: 4 }),
        (a, b, prefix, same) => {
          const other = [...a.slice(0, same), ...b.slice(same)];
          const expected = bits(a).slice(0, prefix) === bits(other).slice(0, prefix);
          expect(createAddressList([`${a.join(".")}/${prefix}`]).contains(other.join("."))).toBe(expected);
        },
      ),
    );
  });

  test("one spelling", () => {
    expect(normalizeAddress("2001:0DB8::0001")).toBe("2001:db8::1");
    expect(normalizeAddress("fe80::1%eth0")).toBe("fe80::1");
    expect(normalizeAddress("::ffff:127.0.0.1")).toBe("127.0.0.1");
    expect(normalizeAddress("127.0.0.01")).toBeUndefined();
  });
});
