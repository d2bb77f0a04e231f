// Boundaries of Content-Types, and heads of parts as browsers, curl and SDKs write them.

import { describe, expect, test } from "bun:test";
import { MultipartFault } from "./multipart-fault.ts";
import { boundaryOf, readPartHead } from "./multipart-head.ts";

const encode = (text: string) => new TextEncoder().encode(text);

describe("boundaryOf", () => {
  test.each([
    ["multipart/form-data; boundary=abc", "abc"],
    ["Multipart/Form-Data;BOUNDARY=abc", "abc"],
    ['multipart/form-data; boundary="a b:c"', "a b:c"],
    ["multipart/form-data; boundary=----WebKitFormBoundaryAbC123==", "----WebKitFormBoundaryAbC123=="],
    ["multipart/form-data; charset=utf-8; boundary=abc;", "abc"],
    [`multipart/form-data; boundary=${"x".repeat(70)}`, "x".repeat(70)],
  ])("%s", (header, boundary) => {
    expect(boundaryOf(header)).toBe(boundary);
  });

  test.each([
    [null, "notAForm"],
    ["application/json", "notAForm"],
    ["multipart/mixed; boundary=abc", "notAForm"],
    ["multipart/form-data", "noBoundary"],
    ["multipart/form-data; boundary=", "noBoundary"],
    ['multipart/form-data; boundary=""', "noBoundary"],
    ['multipart/form-data; boundary="abc', "noBoundary"],
    ['multipart/form-data; boundary="abc "', "noBoundary"],
    ['multipart/form-data; boundary="a\\"b"', "noBoundary"],
    ["multipart/form-data; boundary=a; boundary=b", "noBoundary"],
    [`multipart/form-data; boundary=${"x".repeat(71)}`, "noBoundary"],
    ["multipart/form-data; boundary=ü", "noBoundary"],
  ])("%s is refused", (header, trouble) => {
    expect(boundaryOf(header)).toMatchObject({ trouble });
  });
});

describe("readPartHead", () => {
  const named: [disposition: string, name: string, filename: string | undefined][] = [
    ['form-data; name="model"', "model", undefined],
    ["form-data; name=model", "model", undefined],
    ['FORM-DATA ;NAME = "model" ;', "model", undefined],
    ['form-data; filename="a;b.png"; name="image[]"', "image[]", "a;b.png"],
    ['form-data; name="image"; filename=""', "image", ""],
    ['form-data; name="a%22b"; filename="c%0D%0Ad%41.png"', 'a"b', "c\r\nd%41.png"],
    ['form-data; name="a"; filename="b\\"c\\\\d.png"', "a", 'b"c\\d.png'],
    ['form-data; name="a"; filename="C:\\new\\x.png"', "a", "C:\\new\\x.png"],
    ['form-data; name="größe"; filename="文.png"', "größe", "文.png"],
    ['form-data; name="a"; filename="EUR.png"; filename*=UTF-8\'\'%e2%82%ac.png', "a", "€.png"],
    ["form-data; name=\"a\"; filename*=utf-8'en'x%20y", "a", "x y"],
    ['form-data; name="a"; filename="../../etc/x\\0"', "a", "../../etc/x\\0"],
    ['form-data; name="__proto__"', "__proto__", undefined],
  ];
  test.each(named)("%s", (disposition, name, filename) => {
    expect(readPartHead(encode(`Content-Disposition: ${disposition}`))).toEqual({
      name,
      filename,
      contentType: undefined,
    });
  });

  test("headers in any order and spelling, with those that say nothing", () => {
    const head = 'content-type:text/plain; charset=utf-8\r\nX-Own: 1\r\nCONTENT-DISPOSITION: form-data; name="a" ';
    expect(readPartHead(encode(`${head}\r\ncontent-transfer-encoding: 8BIT`))).toEqual({
      name: "a",
      filename: undefined,
      contentType: "text/plain; charset=utf-8",
    });
  });

  const own = 'Content-Disposition: form-data; name="a"';
  const refused: [head: string, trouble: string, field?: string][] = [
    ["", "noName"],
    ["Content-Type: text/plain", "noName"],
    ["Content-Disposition: form-data", "noName"],
    ['Content-Disposition: form-data; name=""', "noName"],
    ['Content-Disposition: form-data; filename="x"', "noName"],
    ['Content-Disposition: attachment; name="a"', "headBroken"],
    ['Content-Disposition: form-data; name="a"; name="b"', "headBroken"],
    ['Content-Disposition: form-data; name="a', "headBroken"],
    ['Content-Disposition: form-data; name="a"b', "headBroken"],
    ["Content-Disposition: form-data; name=\"a\"; name*=UTF-8''b", "headBroken"],
    [`${own}\r\n${own}`, "headBroken"],
    [`${own}\r\nno header`, "headBroken"],
    [`${own}\r\n folded: line`, "headBroken"],
    [`${own}\r\n: nothing`, "headBroken"],
    [`${own}\r\nX: a\0b`, "headBroken"],
    [`${own}\r\nX: a\nb`, "headBroken"],
    [`${own}; filename*=UTF-8''%ff`, "headBroken", "a"],
    [`${own}; filename*=ISO-8859-1''%e4`, "headBroken", "a"],
    [`${own}\r\nContent-Type: multipart/mixed; boundary=x`, "nested", "a"],
    [`${own}\r\nContent-Transfer-Encoding: base64`, "encoded", "a"],
    [`${own}\r\nContent-Transfer-Encoding: quoted-printable`, "encoded", "a"],
  ];
  test.each(refused.map(([head, trouble, field]) => ({ head, trouble, field })))(
    "%j is refused",
    ({ head, trouble, field }) => {
      let fault: unknown;
      try {
        readPartHead(encode(head));
      } catch (error) {
        fault = error;
      }
      expect(fault).toBeInstanceOf(MultipartFault);
      expect(fault).toMatchObject({ trouble, field });
    },
  );

  test("bytes that are no UTF-8 are refused", () => {
    expect(() => readPartHead(Uint8Array.of(88, 58, 255))).toThrow("UTF-8");
  });
});
