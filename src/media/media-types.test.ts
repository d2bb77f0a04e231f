import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { GatewayError } from "../errors/gateway-error.ts";
import {
  type AcceptedMedia,
  acceptedTypes,
  checkBase64Media,
  checkDeclaredMedia,
  checkMedia,
  isPlainText,
  largestSize,
  normalizeMediaType,
  sniffBase64,
  sniffMediaType,
} from "./media-types.ts";

const PDF = "%PDF-1.7\n";
const PNG = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
const JPEG = "\xff\xd8\xff\xe0\0\x10JFIF";
const WEBP = "RIFF\x24\0\0\0WEBPVP8 ";
const MEBIBYTE = 1024 * 1024;

const bytes = (latin1: string) => Buffer.from(latin1, "latin1");
const base64 = (latin1: string) => bytes(latin1).toString("base64");

function check(declared: string, content: string, accepted: AcceptedMedia = {}, decodedBytes = content.length): string {
  return checkBase64Media({ mediaType: declared, base64: base64(content), decodedBytes }, "file", accepted);
}

function refusal(...parameters: Parameters<typeof check>): GatewayError {
  try {
    check(...parameters);
  } catch (error) {
    return error as GatewayError;
  }
  throw new Error("was accepted");
}

describe("signatures", () => {
  test.each([
    [PDF, "application/pdf"],
    [PNG, "image/png"],
    [JPEG, "image/jpeg"],
    ["GIF87a..", "image/gif"],
    ["GIF89a..", "image/gif"],
    [WEBP, "image/webp"],
    ["RIFF\x24\0\0\0WAVE", undefined],
    ["xxxx\x24\0\0\0WEBP", undefined],
    ["<html>", undefined],
    ["%PD", undefined],
    ["", undefined],
    [" %PDF-1.7", undefined],
  ])("%j -> %s", (content, expected) => {
    expect(sniffMediaType(bytes(content))).toBe(expected as string);
    expect(sniffBase64(base64(content))).toBe(expected as string);
  });
});

describe("checkMedia", () => {
  test.each([
    ["image/png", PNG, {}, "image/png"],
    ["Image/JPG; q=1", JPEG, {}, "image/jpeg"],
    ["application/pdf", PDF, {}, "application/pdf"],
    ["application/x-pdf", PDF, {}, "application/pdf"],
    ["", PDF, {}, "application/pdf"],
    ["application/octet-stream", WEBP, {}, "image/webp"],
    // An image under another image's name.
    ["image/png", JPEG, { kinds: ["image"] }, "image/jpeg"],
    ["text/plain", "hello wörld", { plainText: true }, "text/plain"],
  ] satisfies [string, string, AcceptedMedia, string][])("%s, %j", (declared, content, accepted, expected) => {
    const text = declared === "text/plain" ? Buffer.from(content).toString("latin1") : content;
    expect(check(declared, text, accepted)).toBe(expected);
  });

  test.each([
    ["image/svg+xml", "<svg/>", {}, /media type "image\/svg\+xml" is not accepted/],
    ["text/html", "<html>", { plainText: true }, /not accepted/],
    ["text/plain", "hello", {}, /not accepted/],
    ["text/plain", "he\0llo", { plainText: true }, /content is not/],
    ["text/plain", "\xff\xfe", { plainText: true }, /content is not/],
    ["text/plain", PDF, { plainText: true }, /content is not/],
    ["application/pdf", "<html>", {}, /content is not/],
    ["application/pdf", PNG, {}, /content is not/],
    ["image/png", PDF, {}, /content is not/],
    ["image/png", "<html>", {}, /content is not/],
    ["application/pdf", PDF, { kinds: ["image"] }, /not accepted/],
    ["", "<html>", {}, /unknown type/],
    ["image/png", "", {}, /empty/],
  ] satisfies [string, string, AcceptedMedia, RegExp][])("refuses %s, %j", (declared, content, accepted, message) => {
    const error = refusal(declared, content, accepted);
    expect(error.message).toMatch(message);
    expect(error).toMatchObject({ status: 400, param: "file" });
  });

  test.each([
    ["image/png", PNG, 20],
    ["application/pdf", PDF, 32],
  ])("%s may have so many MB and no byte more", (declared, content, megabytes) => {
    expect(check(declared, content, {}, megabytes * MEBIBYTE)).toBe(declared);
    expect(refusal(declared, content, {}, megabytes * MEBIBYTE + 1).message).toContain(`${megabytes} MB`);
  });

  test("a long type is not repeated whole", () => {
    expect(refusal("x".repeat(5000), "").message.length).toBeLessThan(400);
  });
});

test("what is accepted", () => {
  expect(acceptedTypes()).not.toContain("text/plain");
  expect(acceptedTypes({ plainText: true })).toContain("text/plain");
  expect(acceptedTypes({ kinds: ["image"] })).toEqual(["image/jpeg", "image/png", "image/gif", "image/webp"]);
  expect(largestSize({ kinds: ["image"] })).toBe(20 * MEBIBYTE);
  expect(largestSize()).toBe(32 * MEBIBYTE);
  expect(normalizeMediaType("TEXT/Plain; charset=utf-8")).toBe("text/plain");
  expect(isPlainText(Buffer.from("grüße"))).toBe(true);
});

test("text is looked at only for plain text", () => {
  const isText = () => {
    throw new Error("looked at");
  };
  const facts = { declared: "image/png", sniffed: "image/png", sizeBytes: 10, isText };
  expect(checkMedia(facts, "file")).toBe("image/png");
});

describe("what is said of a file that is kept", () => {
  const MP3 = "ID3\x04\0\0\0\0\0\x23TSSE";
  const FRAME = "\xff\xfb\x90\x64\0\0\0\0";
  const WAV = "RIFF\x24\0\0\0WAVEfmt ";
  const OGG = "OggS\0\x02\0\0";
  const FLAC = "fLaC\0\0\0\x22";
  const M4A = "\0\0\0\x20ftypM4A \0\0\0\0";
  const WEBM = "\x1a\x45\xdf\xa3\x01\0\0\0";
  const judge = (declared: string, content: string) => {
    try {
      checkDeclaredMedia(declared, bytes(content), "file");
      return undefined;
    } catch (error) {
      const { status, param, message } = error as GatewayError;
      return `${status} ${param} ${message}`;
    }
  };

  test.each([
    ["application/pdf", PDF],
    ["application/x-pdf; version=1.7", PDF],
    ["image/jpg", JPEG],
    ["image/webp", WEBP],
    ["audio/mpeg", MP3],
    ["audio/mp3", FRAME],
    ["audio/x-wav", WAV],
    ["audio/ogg", OGG],
    ["audio/flac", FLAC],
    ["audio/x-m4a", M4A],
    ["audio/webm", WEBM],
    ["text/markdown", "# PDF"],
    ["text/csv", "\xff\xfea\0,\0b\0"],
    ["text/plain", ""],
    ["application/json", "{}"],
    ["application/octet-stream", PDF],
    // Where the beginning says nothing.
    ["image/svg+xml", "<svg/>"],
    ["application/postscript", PDF],
    ["video/mp4", M4A],
    ["audio/aac", "\xff\xf1"],
    ["application/zip", "PK\x03\x04"],
  ])("%s may be %j", (declared, content) => {
    expect(judge(declared, content)).toBeUndefined();
  });

  test.each([
    ["application/pdf", "hello"],
    ["application/pdf", ""],
    ["application/pdf", ` ${PDF}`],
    ["application/pdf", PNG],
    ["image/png", JPEG],
    ["image/png", "hello"],
    ["image/webp", WAV],
    ["audio/wav", WEBP],
    ["audio/wav", MP3],
    ["audio/mpeg", "hello"],
    ["audio/mpeg", "\xff\xfeh\0i\0"],
    ["audio/ogg", FLAC],
    ["text/plain", PDF],
    ["text/html", PNG],
    ["application/json", WAV],
  ])("%s may not be %j", (declared, content) => {
    expect(judge(declared, content)).toMatch(
      /^400 file file: the file is said to be [a-z/]+, but its content is not\.$/,
    );
  });

  test("it never contradicts what inline data may be", () => {
    const begin = fc.constantFrom(PDF, PNG, JPEG, WEBP, "GIF89a", MP3, WAV, OGG, "hello ", "");
    const declared = fc.constantFrom(...acceptedTypes({ plainText: true }));
    fc.assert(
      fc.property(begin, fc.string(), declared, (start, rest, mediaType) => {
        const content = start + rest;
        try {
          if (check(mediaType, content, { plainText: true }) !== mediaType) return;
        } catch {
          return;
        }
        // Sound is no document, and inline documents are not asked whether they are sound.
        if (mediaType !== "text/plain") expect(judge(mediaType, content)).toBeUndefined();
      }),
    );
  });
});
