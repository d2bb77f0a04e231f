import { describe, expect, test } from "bun:test";
import type { GatewayError } from "../errors/gateway-error.ts";
import { checkGivenData } from "./given-data.ts";

const PARAM = "messages[0].content[0].file.file_data";
const MEBIBYTE = 1024 * 1024;
const base64 = (text: string) => Buffer.from(text, "latin1").toString("base64");
const CONTENTS = {
  pdf: base64("%PDF-1.7\n%more"),
  png: base64("\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
  jpeg: base64("\xff\xd8\xff\xe0\0\x10JFIF"),
  gif: base64("GIF89a\x01\0"),
  webp: base64("RIFF\0\0\0\0WEBPVP8 "),
  text: base64("Dear all,\n"),
  zip: base64("PK\x03\x04\0\0"),
};

function refusal(data: Omit<Parameters<typeof checkGivenData>[0], "param">): string | undefined {
  try {
    checkGivenData({ ...data, param: PARAM });
    return undefined;
  } catch (error) {
    expect(error).toMatchObject({ name: "GatewayError", status: 400, param: PARAM });
    return (error as GatewayError).message;
  }
}

const url = (mediaType: string, data: string) => `data:${mediaType};base64,${data}`;

describe("a document", () => {
  test.each([
    url("application/pdf", CONTENTS.pdf),
    url("Application/PDF;name=a.pdf", CONTENTS.pdf),
    url("application/octet-stream", CONTENTS.pdf),
    url("application/pdf", ` \n${CONTENTS.pdf.slice(0, 4)}\r\n${CONTENTS.pdf.slice(4)}`),
    url("image/png", CONTENTS.png),
    url("image/jpg", CONTENTS.jpeg),
    url("image/gif", CONTENTS.gif),
    url("image/webp", CONTENTS.webp),
    url("text/plain", CONTENTS.text),
    url("text/csv; charset=utf-8", CONTENTS.text),
    url("application/json", base64("{}")),
  ])("%s is what it is said to be", (value) => expect(refusal({ place: "document", value })).toBeUndefined());

  test.each([
    [url("application/pdf", CONTENTS.text), "but its content is not"],
    [url("application/pdf", base64(" %PDF-1.7")), "but its content is not"],
    [url("application/pdf", CONTENTS.png), "but its content is not"],
    [url("application/pdf", "%%%%"), "but its content is not"],
    [url("image/png", CONTENTS.jpeg), "its content is image/jpeg"],
    [url("text/plain", CONTENTS.pdf), "but its content is not"],
    [url("text/plain", CONTENTS.zip), "but its content is not"],
    [url("application/zip", CONTENTS.zip), '"application/zip" is not accepted'],
    [url("", CONTENTS.text), "unknown type"],
    [url("application/pdf", ""), "empty"],
    ["data:application/pdf,%PDF-1.7", "expected base64"],
    ["data:application/pdf", "no valid data: URL"],
  ])("%s is refused", (value, message) => expect(refusal({ place: "document", value })).toContain(message));

  test("without a URL around it", () => {
    const { pdf, text } = CONTENTS;
    expect(refusal({ place: "document", value: pdf, mediaType: "application/pdf" })).toBeUndefined();
    expect(refusal({ place: "document", value: text, mediaType: "application/pdf" })).toContain("its content is not");
  });

  test("of more bytes than its type may have; blanks do not count", () => {
    const png = CONTENTS.png.slice(0, 20);
    const most = `${png}${"A".repeat(4 * Math.floor((20 * MEBIBYTE) / 3) - 20)}`;
    expect(refusal({ place: "document", value: url("image/png", most) })).toBeUndefined();
    expect(refusal({ place: "document", value: url("image/png", `${most}\r\n\r\n`) })).toBeUndefined();
    expect(refusal({ place: "document", value: url("image/png", `${most}AAAA`) })).toContain("at most 20 MB");
  });
});

describe("a picture", () => {
  test.each([
    url("image/png", CONTENTS.png),
    url("image/bmp", base64("BM")),
    url("image/avif", base64("\0\0\0 ftypavif")),
    url("application/pdf", CONTENTS.pdf),
    "data:image/svg+xml,%3Csvg%2F%3E",
  ])("%s may go on", (value) => expect(refusal({ place: "image", value })).toBeUndefined());

  test.each([
    [url("image/png", "AAAA"), "but its content is not"],
    [url("image/png", CONTENTS.gif), "its content is image/gif"],
    [url("application/pdf", CONTENTS.png), "but its content is not"],
    ["data:image/png,x", "expected base64"],
    ["data:", "no valid data: URL"],
  ])("%s is refused", (value, message) => expect(refusal({ place: "image", value })).toContain(message));
});

test("sound and video are not judged", () => {
  expect(refusal({ place: "other", value: "data:audio/wav;base64,AAAA" })).toBeUndefined();
});
