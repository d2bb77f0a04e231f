// Answers as bytes, good and bad, each with what must become of it. Cut anywhere, the same must become of it.

import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";

export interface KnownAnswer {
  /** What it is, or what is wrong with it. */
  name: string;
  bytes: Buffer;
  /** What the server does behind the last byte; "keep": it waits for the next request. */
  ending: "keep" | "fin" | "reset";
  method?: string;
  /** Only what is in the body is wrong, so that the connection may go on. */
  isWellFramed?: boolean;
  /** "refused": the call or its body fails, and not a byte more of the body is told than stands in `body`. */
  outcome:
    | {
        status: number;
        body: string;
        headers?: Readonly<Record<string, string | null>>;
        /** Whether the next request goes over the same connection; undefined: that is left to the client. */
        isKept: boolean | undefined;
      }
    | "refused";
}

interface GoodAnswerParts {
  status?: number;
  headers?: Readonly<Record<string, string | null>>;
  isKept?: boolean | "either";
  method?: string;
  ending?: KnownAnswer["ending"];
}

const KIBIBYTE = 1024;
const MEBIBYTE = 1024 * KIBIBYTE;

function latin1(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

function good(name: string, bytes: string | Buffer, body: string, more: GoodAnswerParts = {}): KnownAnswer {
  const { status = 200, headers, isKept = true, ending = "keep", method } = more;
  return {
    name,
    bytes: typeof bytes === "string" ? latin1(bytes) : bytes,
    ending,
    ...(method !== undefined && { method }),
    outcome: {
      status,
      body,
      isKept: isKept === "either" ? undefined : isKept,
      ...(headers !== undefined && { headers }),
    },
  };
}

function bad(name: string, bytes: string | Buffer, ending: KnownAnswer["ending"] = "keep"): KnownAnswer {
  return { name, bytes: typeof bytes === "string" ? latin1(bytes) : bytes, ending, outcome: "refused" };
}

/** A body of known length that cannot be decoded. */
function undecodable(name: string, coding: string, bytes: Buffer): KnownAnswer {
  return { name, bytes: encoded(coding, bytes), ending: "keep", isWellFramed: true, outcome: "refused" };
}

/** A whole answer of known length. */
export function answerOf(body: string | Buffer, headers: readonly string[] = [], status = "200 OK"): Buffer {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const lines = [`HTTP/1.1 ${status}`, ...headers, `Content-Length: ${bytes.length}`, "", ""];
  return Buffer.concat([latin1(lines.join("\r\n")), bytes]);
}

/** A whole answer in the chunks given. */
export function chunkedOf(
  chunks: readonly string[],
  { trailers = [] as readonly string[], headers = [] as readonly string[] } = {},
): Buffer {
  const head = ["HTTP/1.1 200 OK", ...headers, "Transfer-Encoding: chunked", "", ""].join("\r\n");
  const body = chunks.map((chunk) => `${Buffer.byteLength(chunk).toString(16)}\r\n${chunk}\r\n`).join("");
  return Buffer.from(`${head}${body}0\r\n${trailers.map((line) => `${line}\r\n`).join("")}\r\n`);
}

function encoded(coding: string, bytes: Buffer): Buffer {
  return answerOf(bytes, [`Content-Encoding: ${coding}`, "Content-Type: application/json"]);
}

const HEAD = "HTTP/1.1 200 OK\r\n";
const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n`;
const TEXT = '{"answer":"Grüße, 世界 \u{1f600}"}';
const REPEATING = "one token after another; ".repeat(40);

/** None of them is long, so that each can be cut at every byte. */
export const GOOD_ANSWERS: readonly KnownAnswer[] = [
  good("a length", answerOf(TEXT, ["Content-Type: application/json"]), TEXT, {
    headers: { "content-type": "application/json", "content-length": String(Buffer.byteLength(TEXT)), absent: null },
  }),
  good("a length of nothing", `${HEAD}Content-Length: 0\r\n\r\n`, ""),
  good("a length with leading zeros", `${HEAD}Content-Length: 0003\r\n\r\nabc`, "abc"),
  good("no words behind the status", "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok", "ok"),
  good("another status", answerOf("no", [], "418 I'm a teapot"), "no", { status: 418 }),
  good("a redirect", answerOf("", ["Location: http://127.0.0.1:1/elsewhere"], "307 Temporary Redirect"), "", {
    status: 307,
    headers: { location: "http://127.0.0.1:1/elsewhere" },
  }),
  good(
    "header names in any case, and space around values",
    `${HEAD}X-ONE:  a b\t \r\nx-Two:c\r\nx-three: \r\nCONTENT-LENGTH:1\r\n\r\nz`,
    "z",
    {
      headers: { "x-one": "a b", "x-two": "c", "x-three": "" },
    },
  ),
  good("headers of one name", `${HEAD}X-A: 1\r\nX-B: 2\r\nx-a: 3\r\nContent-Length: 0\r\n\r\n`, "", {
    headers: { "x-a": "1, 3", "x-b": "2" },
  }),
  good(
    "a header named like a member of every object",
    `${HEAD}constructor: c\r\n__proto__: p\r\nContent-Length: 0\r\n\r\n`,
    "",
    {
      headers: { constructor: "c", tostring: null },
    },
  ),
  good(
    "two hundred long headers",
    answerOf(
      "ok",
      Array.from({ length: 200 }, (_, each) => `X-${each}: ${"v".repeat(200)}`),
    ),
    "ok",
    {
      headers: { "x-0": "v".repeat(200), "x-199": "v".repeat(200) },
    },
  ),
  good("one chunk", chunkedOf([TEXT]), TEXT),
  good(
    "several chunks",
    chunkedOf(["a", "bc", "d".repeat(17), "\r\n", "0\r\n\r\n"]),
    `abc${"d".repeat(17)}\r\n0\r\n\r\n`,
  ),
  good("no chunks", chunkedOf([]), ""),
  good(
    "chunk sizes in capitals and with leading zeros",
    `${CHUNKED}000A\r\n0123456789\r\nB\r\n0123456789a\r\n00\r\n\r\n`,
    "01234567890123456789a",
  ),
  good("chunk extensions", `${CHUNKED}3;a\r\nabc\r\n2;b=c;d="e\\";f"\r\nde\r\n0;last=1\r\n\r\n`, "abcde"),
  good("trailers", chunkedOf(["abc"], { trailers: ["X-Checksum: 1", "Content-Length: 7"] }), "abc", {
    headers: { "x-checksum": null, "content-length": null },
  }),
  good("trailers that are none, as nobody reads them", `${CHUNKED}3\r\nabc\r\n0\r\nX-A\r\n\r\n`, "abc"),
  good("a chunk size with a space behind it", `${CHUNKED}3 \r\nabc\r\n0 ;a\r\n\r\n`, "abc"),
  good(
    "a header in UTF-8 that ends with a byte like a space",
    Buffer.from(`${HEAD}X-A: voilà\r\nContent-Length: 0\r\n\r\n`),
    "",
    {
      headers: { "x-a": Buffer.from("voilà").toString("latin1") },
    },
  ),
  good("Transfer-Encoding in capitals", `${HEAD}TRANSFER-ENCODING: Chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`, "a"),
  good("no length, and the end of the connection", `${HEAD}Content-Type: text/plain\r\n\r\nall of it`, "all of it", {
    ending: "fin",
    isKept: false,
  }),
  good("no length and no body", `${HEAD}\r\n`, "", { ending: "fin", isKept: false }),
  good("Connection: close with a length", `${HEAD}Connection: close\r\nContent-Length: 2\r\n\r\nok`, "ok", {
    isKept: false,
  }),
  good(
    "Connection: close in a list, chunked",
    `${HEAD}Connection: x-other, Close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
    "ok",
    { isKept: false },
  ),
  good("HTTP/1.0 with a length", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", { isKept: false }),
  good(
    "HTTP/1.0 that keeps the connection",
    "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
    "ok",
    { isKept: "either" },
  ),
  good("HTTP/1.0 without a length", "HTTP/1.0 200 OK\r\n\r\nok", "ok", { ending: "fin", isKept: false }),
  good("an interim answer before it", `HTTP/1.1 100 Continue\r\n\r\n${HEAD}Content-Length: 2\r\n\r\nok`, "ok"),
  good(
    "several interim answers with headers before it",
    `HTTP/1.1 102 Processing\r\nX-A: 1\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\nContent-Length: 5\r\n\r\n${HEAD}Content-Length: 2\r\n\r\nok`,
    "ok",
    { headers: { "x-a": null, link: null } },
  ),
  good("204", "HTTP/1.1 204 No Content\r\n\r\n", "", { status: 204 }),
  good("304 with the length of what it does not send", "HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n", "", {
    status: 304,
  }),
  good("HEAD with the length of what it does not send", `${HEAD}Content-Length: 500\r\n\r\n`, "", { method: "HEAD" }),
  good("HEAD with chunks that it does not send", `${HEAD}Transfer-Encoding: chunked\r\n\r\n`, "", { method: "HEAD" }),
  good("gzip", encoded("gzip", gzipSync(REPEATING)), REPEATING),
  good("gzip by its old name", encoded("x-gzip", gzipSync(TEXT)), TEXT),
  good("deflate", encoded("deflate", deflateSync(TEXT)), TEXT),
  good("deflate without its wrapping", encoded("deflate", deflateRawSync(TEXT)), TEXT),
  good("br", encoded("br", brotliCompressSync(TEXT)), TEXT),
  good("identity by name", encoded("identity", Buffer.from(TEXT)), TEXT),
];

export const BAD_ANSWERS: readonly KnownAnswer[] = [
  bad("nothing, and the end", "", "fin"),
  bad("nothing, and a reset", "", "reset"),
  bad("half a head, and the end", `${HEAD}Content-Le`, "fin"),
  bad("half a head, and a reset", `${HEAD}Content-Le`, "reset"),
  bad("only an interim answer, and the end", "HTTP/1.1 100 Continue\r\n\r\n", "fin"),
  bad("half of the length, and the end", `${HEAD}Content-Length: 10\r\n\r\nhalf`, "fin"),
  bad("half of the length, and a reset", `${HEAD}Content-Length: 10\r\n\r\nhalf`, "reset"),
  bad("no length, and a reset", `${HEAD}Content-Type: text/plain\r\n\r\nnot all of it`, "reset"),
  bad("half a chunk, and the end", `${CHUNKED}a\r\nhalf`, "fin"),
  bad("chunks without the last one, and the end", `${CHUNKED}4\r\nhalf\r\n`, "fin"),
  bad("chunks without the empty line behind the last one, and the end", `${CHUNKED}4\r\nhalf\r\n0\r\n`, "fin"),
  bad("half a chunk size, and the end", `${CHUNKED}4\r\nhalf\r\n0`, "fin"),
  bad("lengths that differ", `${HEAD}Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc`),
  bad("lengths that differ in one list", `${HEAD}Content-Length: 2, 3\r\n\r\nabc`),
  bad("a negative length", `${HEAD}Content-Length: -1\r\n\r\nabc`, "fin"),
  bad("a length with a sign", `${HEAD}Content-Length: +3\r\n\r\nabc`),
  bad("a length in words", `${HEAD}Content-Length: three\r\n\r\nabc`, "fin"),
  bad("a length in hexadecimal", `${HEAD}Content-Length: 0x3\r\n\r\nabc`, "fin"),
  bad("a length with a fraction", `${HEAD}Content-Length: 3.0\r\n\r\nabc`, "fin"),
  bad("a length of nothing at all", `${HEAD}Content-Length: \r\n\r\nabc`, "fin"),
  bad("a length beyond all numbers", `${HEAD}Content-Length: ${"9".repeat(30)}\r\n\r\nabc`),
  bad("a length of two to the power of 64, and three", `${HEAD}Content-Length: 18446744073709551619\r\n\r\nabc`),
  bad("a length and chunks", `${HEAD}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`),
  bad("chunks and a length", `${HEAD}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n`),
  bad("an unknown transfer coding", `${HEAD}Transfer-Encoding: cow\r\n\r\nabc`, "fin"),
  bad(
    "chunked that is not the last coding",
    `${HEAD}Transfer-Encoding: chunked, gzip\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
    "fin",
  ),
  bad("chunked twice", `${HEAD}Transfer-Encoding: chunked, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`),
  bad(
    "chunked twice, in two lines",
    `${HEAD}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
  ),
  bad(
    "a coding that only looks like chunked",
    `${HEAD}Transfer-Encoding: xchunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
    "fin",
  ),
  bad("a chunk size in words", `${CHUNKED}xyz\r\nabc\r\n0\r\n\r\n`),
  bad("a chunk size of nothing", `${CHUNKED}\r\nabc\r\n0\r\n\r\n`),
  bad("a chunk size with a sign", `${CHUNKED}+3\r\nabc\r\n0\r\n\r\n`),
  bad("a negative chunk size", `${CHUNKED}-3\r\nabc\r\n0\r\n\r\n`),
  bad("a chunk size with 0x", `${CHUNKED}0x3\r\nabc\r\n0\r\n\r\n`),
  bad("a chunk size beyond all numbers", `${CHUNKED}${"f".repeat(20)}\r\nabc\r\n0\r\n\r\n`),
  bad("a chunk size of two to the power of 32, and three", `${CHUNKED}100000003\r\nabc\r\n0\r\n\r\n`, "fin"),
  bad("a chunk that is longer than its size", `${CHUNKED}3\r\nabcd\r\n0\r\n\r\n`),
  bad("a chunk without its line end", `${CHUNKED}3\r\nabc0\r\n\r\n`),
  bad("bare LF behind a chunk", `${CHUNKED}3\r\nabc\n0\r\n\r\n`),
  bad("bare LF behind a chunk size", `${CHUNKED}3\nabc\r\n0\r\n\r\n`),
  bad("bare LF in a chunk extension", `${CHUNKED}3;a\nabc\r\n0\r\n\r\n`),
  bad("bare CR in a chunk extension", `${CHUNKED}3;a\rb\r\nabc\r\n0\r\n\r\n`),
  bad("bare LF behind the last chunk", `${CHUNKED}3\r\nabc\r\n0\n\n`),
  bad("bare LF for line ends", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok"),
  bad("bare LF behind the status line", "HTTP/1.1 200 OK\nContent-Length: 2\r\n\r\nok"),
  bad("bare LF behind a header", `${HEAD}X-A: 1\nContent-Length: 2\r\n\r\nok`),
  bad("bare CR in a header", `${HEAD}X-A: 1\rX-B: 2\r\nContent-Length: 2\r\n\r\nok`),
  bad("a NUL in a value", `${HEAD}X-A: 1\x002\r\nContent-Length: 2\r\n\r\nok`),
  bad("a NUL in a name", `${HEAD}X\x00A: 1\r\nContent-Length: 2\r\n\r\nok`),
  bad("a control character in a value", `${HEAD}X-A: 1\x1b2\r\nContent-Length: 2\r\n\r\nok`),
  bad("a space before the colon", `${HEAD}Content-Length : 2\r\n\r\nok`, "fin"),
  bad("a space before the first name", `${HEAD} X-A: 1\r\nContent-Length: 2\r\n\r\nok`),
  bad("a space in a name", `${HEAD}X A: 1\r\nContent-Length: 2\r\n\r\nok`),
  bad("a space in a name whose line goes on", `${HEAD}X A`),
  bad("a control character in a value whose line goes on", `${HEAD}X-A: a\x01b`),
  bad("a header without a name", `${HEAD}: 1\r\nContent-Length: 2\r\n\r\nok`),
  bad("a header without a colon", `${HEAD}X-A\r\nContent-Length: 2\r\n\r\nok`),
  bad("a value over two lines", `${HEAD}X-A: 1\r\n 2\r\nContent-Length: 2\r\n\r\nok`),
  bad("words behind a chunk size that are no extension", `${CHUNKED}3 4\r\nabc\r\n0\r\n\r\n`),
  bad(
    "101, which nobody asked for",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nabc",
    "fin",
  ),
  bad("interim answers without end", "HTTP/1.1 102 Processing\r\n\r\n".repeat(1_000)),
  bad("a status of two digits", "HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok"),
  bad("a status of four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok"),
  bad("a status in words", "HTTP/1.1 abc OK\r\nContent-Length: 2\r\n\r\nok"),
  bad("a status below all others", "HTTP/1.1 000 OK\r\nContent-Length: 2\r\n\r\nok"),
  bad("a version that nobody speaks", "HTTP/3.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "fin"),
  bad("a version without a number", "HTTP 200 OK\r\nContent-Length: 2\r\n\r\nok", "fin"),
  bad("another protocol", "SSH-2.0-OpenSSH_9.2\r\n", "fin"),
  bad("another protocol that waits", "SSH-2.0-OpenSSH_9.2\r\n"),
  bad("HTTP without a version", "<html>old</html>", "fin"),
  bad("an HTTP/2 server's settings", Buffer.from("00000604000000000000020000000000", "hex"), "fin"),
  bad("a TLS alert", Buffer.from("15030300020228", "hex"), "fin"),
  bad("a request instead of an answer", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "fin"),
  bad("text that never ends its line", "x".repeat(2 * MEBIBYTE)),
  bad("a header of two megabytes", `${HEAD}X-A: ${"a".repeat(2 * MEBIBYTE)}\r\nContent-Length: 2\r\n\r\nok`),
  bad("five thousand headers in few bytes", `${HEAD}${"X: y\r\n".repeat(5_000)}Content-Length: 2\r\n\r\nok`),
  bad("a hundred thousand headers", `${HEAD}${"X: y\r\n".repeat(100_000)}Content-Length: 2\r\n\r\nok`),
  bad(
    "an interim answer of two megabytes",
    `HTTP/1.1 103 Early Hints\r\nX-A: ${"a".repeat(2 * MEBIBYTE)}\r\n\r\n${HEAD}Content-Length: 2\r\n\r\nok`,
  ),
  bad("a chunk extension of two megabytes", `${CHUNKED}3;a=${"b".repeat(2 * MEBIBYTE)}\r\nabc\r\n0\r\n\r\n`),
  bad("a chunk size of two megabytes of zeros", `${CHUNKED}${"0".repeat(2 * MEBIBYTE)}3\r\nabc\r\n0\r\n\r\n`),
  bad(
    "trailers of two megabytes",
    chunkedOf(["abc"], {
      trailers: Array.from({ length: 1_000 }, (_, each) => `X-${each}: ${"t".repeat(2 * KIBIBYTE)}`),
    }),
  ),
  undecodable("gzip that is none", "gzip", Buffer.from(TEXT)),
  undecodable("gzip with half of its bytes", "gzip", gzipSync(REPEATING).subarray(0, 30)),
  undecodable(
    "gzip with a wrong checksum",
    "gzip",
    Buffer.from(gzipSync(REPEATING).map((byte, at, all) => (at === all.length - 6 ? byte ^ 1 : byte))),
  ),
  undecodable("br with half of its bytes", "br", brotliCompressSync(REPEATING).subarray(0, 12)),
  undecodable("deflate with half of its bytes", "deflate", deflateSync(REPEATING).subarray(0, 20)),
  undecodable(
    "deflate without its wrapping, with half of its bytes",
    "deflate",
    deflateRawSync(REPEATING).subarray(0, 20),
  ),
  undecodable("zstd, whose half cannot be told from the whole", "zstd", zstdCompressSync(REPEATING)),
  undecodable("a coding that nobody knows", "rot13", Buffer.from(TEXT)),
];
