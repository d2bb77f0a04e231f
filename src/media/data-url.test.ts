import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isDataUrl, normalizeBase64, parseDataUrl, readDataUrl } from "./data-url.ts";

describe("parseDataUrl", () => {
  test.each([
    ["data:image/png;base64,QUJD", { mediaType: "image/png", base64: "QUJD", decodedBytes: 3 }],
    ["DATA:Image/PNG;BASE64,QUJD", { mediaType: "image/png", base64: "QUJD", decodedBytes: 3 }],
    ["data:text/plain;charset=utf-8;base64,QUI=", { mediaType: "text/plain", base64: "QUI=", decodedBytes: 2 }],
    ["data:;base64,QQ==", { mediaType: "", base64: "QQ==", decodedBytes: 1 }],
    ["data:application/pdf;base64,QQ", { mediaType: "application/pdf", base64: "QQ==", decodedBytes: 1 }],
    ["data:image/png;base64,QU\nJD\r\n", { mediaType: "image/png", base64: "QUJD", decodedBytes: 3 }],
    ["data:image/png;base64,", { mediaType: "image/png", base64: "", decodedBytes: 0 }],
  ])("%j", (text, expected) => {
    expect(parseDataUrl(text)).toEqual(expected);
  });

  test.each([
    "https://example.com/a.png",
    "data:image/png,QUJD",
    "data:image/png;base64",
    "data:image/png;base64,QUJ*",
    "data:image/png;base64,Q-_D",
    "data:image/png;base64,QUJDR",
    "data:image/png;base64,QUI=QUJD",
    "data:image/png;base64,QUJD=",
    "data:image/png;base64,Q===",
    "data:image/png;base64,%51%55",
    `data:${"x".repeat(300)};base64,QUJD`,
    "",
  ])("refuses %j", (text) => {
    expect(parseDataUrl(text)).toBeUndefined();
  });

  test("keeps every payload and knows its size", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const base64 = Buffer.from(bytes).toString("base64");
        const expected = { mediaType: "image/gif", base64, decodedBytes: bytes.length };
        expect(parseDataUrl(`data:image/gif;base64,${base64}`)).toEqual(expected);
        expect(normalizeBase64(base64.replaceAll("=", ""))).toEqual({ base64, decodedBytes: bytes.length });
      }),
    );
  });
});

test("isDataUrl", () => {
  expect(isDataUrl("Data:,x")).toBe(true);
  expect(isDataUrl("https://data:1/")).toBe(false);
});

test("readDataUrl names the field", () => {
  const read = () => readDataUrl("nonsense", "input[0].content[1].file_data");
  expect(read).toThrow(
    expect.objectContaining({ status: 400, param: "input[0].content[1].file_data" }) as unknown as Error,
  );
});
