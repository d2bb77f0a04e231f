// Requests about which servers have disagreed: where the head ends, where the body ends, and what is asked for. Each form
// hides a second request where a server sees it that reads the bytes in the other way.

export interface Form {
  name: string;
  /** `body` is a chat request; `hidden` the second request. */
  bytes(parts: { body: string; hidden: string }): string;
  /** Whether the first request is answered; default: it is refused, or never complete. */
  served?: boolean;
}

const HOST = "Host: 127.0.0.1";
const JSON_TYPE = "Content-Type: application/json";

const post = (lines: readonly string[], rest: string) =>
  `${["POST /v1/chat/completions HTTP/1.1", HOST, JSON_TYPE, ...lines].join("\r\n")}\r\n\r\n${rest}`;
/** The hidden request is its body. */
const get = (lines: readonly string[], hidden: string, requestLine = "GET /v1/models HTTP/1.1") =>
  `${[requestLine, HOST, `Content-Length: ${hidden.length}`, ...lines].join("\r\n")}\r\n\r\n${hidden}`;
const chunk = (data: string) => `${data.length.toString(16)}\r\n${data}\r\n`;
const END = "0\r\n\r\n";

/** Header lines that some servers take for "Transfer-Encoding: chunked", and others do not. */
const CHUNKED_SPELLINGS: readonly [name: string, lines: string][] = [
  ["as it should be", "Transfer-Encoding: chunked"],
  ["in capitals", "TRANSFER-ENCODING: CHUNKED"],
  ["a blank before the colon", "Transfer-Encoding : chunked"],
  ["a tab before the colon", "Transfer-Encoding\t: chunked"],
  ["a tab behind the colon", "Transfer-Encoding:\tchunked"],
  ["a vertical tab behind the colon", "Transfer-Encoding:\x0bchunked"],
  ["a form feed behind the value", "Transfer-Encoding: chunked\x0c"],
  ["no blank", "Transfer-Encoding:chunked"],
  ["blanks behind it", "Transfer-Encoding: chunked   "],
  ["a zero byte behind it", "Transfer-Encoding: chunked\0"],
  ["a zero byte in the name", "Transfer-Encoding\0: chunked"],
  ["folded", "Transfer-Encoding:\r\n chunked"],
  ["folded behind another header", "X-Other: x\r\n Transfer-Encoding: chunked"],
  ["behind a bare line feed", "X-Other: x\nTransfer-Encoding: chunked"],
  ["behind a bare carriage return", "X-Other: x\rTransfer-Encoding: chunked"],
  ["a bare carriage return behind it", "Transfer-Encoding: chunked\r"],
  ["in a name that is cut", "X-Other\r\nTransfer-Encoding: chunked"],
  ["a soft hyphen", "Transfer\xadEncoding: chunked"],
  ["quoted", 'Transfer-Encoding: "chunked"'],
  ["with a parameter", "Transfer-Encoding: chunked;q=1"],
  ["a comma behind it", "Transfer-Encoding: chunked,"],
  ["a comma before it", "Transfer-Encoding: ,chunked"],
  ["twice in a list", "Transfer-Encoding: chunked, chunked"],
  ["twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"],
  ["identity behind it", "Transfer-Encoding: chunked, identity"],
  ["identity before it", "Transfer-Encoding: identity, chunked"],
  ["identity in a second header", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"],
  ["a second header before it", "Transfer-Encoding: x\r\nTransfer-Encoding: chunked"],
  ["compressed too", "Transfer-Encoding: gzip, chunked"],
  ["a longer word", "Transfer-Encoding: xchunked"],
  ["a cut word", "Transfer-Encoding: chunke"],
  ["a byte before it", "Transfer-Encoding: \xffchunked"],
  ["named by Connection", "Transfer-Encoding: chunked\r\nConnection: Transfer-Encoding"],
];

/** With a length that covers everything: who reads chunks sees the hidden request behind the last one. */
const behindTheChunks = CHUNKED_SPELLINGS.map(
  ([name, lines]): Form => ({
    name: `a length, and chunks (${name}) that end before it`,
    bytes({ body, hidden }) {
      const rest = chunk(body) + END + hidden;
      return post([`Content-Length: ${rest.length}`, lines], rest);
    },
  }),
);

/** With a length that ends early: who reads lengths sees the hidden request that is in a chunk. */
const insideAChunk = CHUNKED_SPELLINGS.map(
  ([name, lines]): Form => ({
    name: `chunks (${name}), and a length that ends before them`,
    bytes({ hidden }) {
      const size = hidden.length.toString(16);
      return post([lines, `Content-Length: ${size.length + 2}`], `${size}\r\n${hidden}\r\n${END}`);
    },
  }),
);

/** Lines that some servers take for the length of the body, and some for no length or another one. */
const LENGTHS: readonly [name: string, lines: (length: number) => string][] = [
  ["twice, the second is none", (length) => `Content-Length: ${length}\r\nContent-Length: 0`],
  ["twice, the first is none", (length) => `Content-Length: 0\r\nContent-Length: ${length}`],
  ["twice the same", (length) => `Content-Length: ${length}\r\nContent-Length: ${length}`],
  ["a list", (length) => `Content-Length: ${length}, 0`],
  ["a list of the same", (length) => `Content-Length: ${length}, ${length}`],
  ["with a plus sign", (length) => `Content-Length: +${length}`],
  ["with a minus sign", (length) => `Content-Length: -${length}`],
  ["with a blank inside", (length) => `Content-Length: ${String(length).split("").join(" ")}`],
  ["hexadecimal", (length) => `Content-Length: 0x${length.toString(16)}`],
  ["with letters behind", (length) => `Content-Length: ${length}abc`],
  ["with a fraction", (length) => `Content-Length: ${length}.0`],
  ["with an exponent", (length) => `Content-Length: ${length}e0`],
  ["with an underscore", (length) => `Content-Length: ${String(length).split("").join("_")}`],
  ["in quotes", (length) => `Content-Length: "${length}"`],
  ["with a semicolon", (length) => `Content-Length: ${length};`],
  ["empty", () => "Content-Length:"],
  ["a blank", () => "Content-Length:  "],
  ["a word", () => "Content-Length: chunked"],
  ["beyond 64 bits", (length) => `Content-Length: ${2n ** 64n + BigInt(length)}`],
  ["at 64 bits", () => `Content-Length: ${2n ** 64n}`],
  ["at 63 bits", () => `Content-Length: ${2n ** 63n}`],
  ["of forty digits", () => `Content-Length: ${"9".repeat(40)}`],
  ["with a zero byte behind", (length) => `Content-Length: ${length}\0`],
  ["with a vertical tab", (length) => `Content-Length:\x0b${length}`],
  ["folded", (length) => `Content-Length:\r\n ${length}`],
  ["folded in its middle", (length) => `Content-Length: ${String(length)[0]}\r\n ${String(length).slice(1)}`],
  ["a blank before the colon", (length) => `Content-Length : ${length}`],
  ["a zero byte in the name", (length) => `Content-Length\0: ${length}`],
  ["behind a bare carriage return", (length) => `X-Other: x\rContent-Length: ${length}`],
];

/** The hidden request is the body: who takes the line for another one, or none, sees it. */
const lengths = LENGTHS.map(
  ([name, lines]): Form => ({
    name: `a length ${name}`,
    bytes: ({ hidden }) => post([lines(hidden.length)], hidden),
  }),
);

/** The body of a request with chunks; `size` is that of a chat request in one chunk. */
const CHUNKS: readonly [name: string, rest: (parts: { body: string; size: string; hidden: string }) => string][] = [
  ["a size with 0x", ({ body, size, hidden }) => `0x${size}\r\n${body}\r\n${END}${hidden}`],
  ["a size with a minus sign", ({ body, size, hidden }) => `-${size}\r\n${body}\r\n${END}${hidden}`],
  ["a size with a plus sign", ({ body, size, hidden }) => `+${size}\r\n${body}\r\n${END}${hidden}`],
  ["a blank before the size", ({ body, size, hidden }) => ` ${size}\r\n${body}\r\n${END}${hidden}`],
  ["an empty size", ({ hidden }) => `\r\n\r\n${hidden}`],
  ["a size that is no number", ({ body, hidden }) => `xyz\r\n${body}\r\n${END}${hidden}`],
  ["a size with letters behind", ({ body, size, hidden }) => `${size}xyz\r\n${body}\r\n${END}${hidden}`],
  ["a size beyond 64 bits", ({ hidden }) => `10000000000000000\r\n\r\n${hidden}`],
  ["a size beyond 32 bits", ({ hidden }) => `100000000\r\n\r\n${hidden}`],
  ["a size of all ones", ({ hidden }) => `ffffffffffffffff\r\n\r\n${hidden}`],
  ["a size of forty digits", ({ hidden }) => `${"f".repeat(40)}\r\n\r\n${hidden}`],
  ["a size that ends with a bare line feed", ({ body, size, hidden }) => `${size}\n${body}\r\n${END}${hidden}`],
  ["a size that ends with a bare carriage return", ({ body, size, hidden }) => `${size}\r${body}\r\n${END}${hidden}`],
  ["no line break behind the data", ({ body, size, hidden }) => `${size}\r\n${body}${END}${hidden}`],
  ["a bare line feed behind the data", ({ body, size, hidden }) => `${size}\r\n${body}\n${END}${hidden}`],
  ["two bytes instead of a line break", ({ body, size, hidden }) => `${size}\r\n${body}XX${END}${hidden}`],
  [
    "data that is longer than its size",
    ({ body, hidden }) => `${(body.length - 3).toString(16)}\r\n${body}\r\n${END}${hidden}`,
  ],
  ["an extension with a bare line feed", ({ body, size, hidden }) => `${size};a\nb\r\n${body}\r\n${END}${hidden}`],
  [
    "an extension with a bare carriage return",
    ({ body, size, hidden }) => `${size};a\rb\r\n${body}\r\n${END}${hidden}`,
  ],
  ["a zero byte in an extension", ({ body, size, hidden }) => `${size};a\0\r\n${body}\r\n${END}${hidden}`],
  ["a last chunk without its line", ({ body, hidden }) => `${chunk(body)}0\r\n${hidden}`],
  ["a last chunk with a sign", ({ body, hidden }) => `${chunk(body)}-0\r\n\r\n${hidden}`],
  ["a last chunk that ends with bare line feeds", ({ body, hidden }) => `${chunk(body)}0\n\n${hidden}`],
  ["a trailer with a bare line feed", ({ body, hidden }) => `${chunk(body)}0\r\nX: y\n\n${hidden}`],
];

const chunks = CHUNKS.map(
  ([name, rest]): Form => ({
    name: `chunks: ${name}`,
    bytes: (parts) => post(["Transfer-Encoding: chunked"], rest({ ...parts, size: parts.body.length.toString(16) })),
  }),
);

/** Odd, and yet all servers agree about them: exactly one request. */
const AGREED: readonly Form[] = [
  {
    name: "blanks around a length",
    served: true,
    bytes: ({ body }) => post([`Content-Length: \t ${body.length} \t`], body),
  },
  {
    name: "zeros before a length",
    served: true,
    bytes: ({ body }) => post([`Content-Length: 000${body.length}`], body),
  },
  {
    name: "a body of a GET that looks like a request",
    served: true,
    bytes: ({ hidden }) => get([], hidden),
  },
  {
    name: "chunks that look like a request",
    bytes: ({ hidden }) => post(["Transfer-Encoding: chunked"], chunk(hidden) + END),
  },
  {
    name: "an extension of a chunk",
    served: true,
    bytes: ({ body }) => post(["Transfer-Encoding: chunked"], `${body.length.toString(16)};a=b\r\n${body}\r\n${END}`),
  },
  {
    name: "a size with zeros in front",
    served: true,
    bytes: ({ body }) => post(["Transfer-Encoding: chunked"], `000${body.length.toString(16)}\r\n${body}\r\n${END}`),
  },
  {
    name: "an upgrade to HTTP/2 with a request behind it",
    served: true,
    bytes: ({ hidden }) =>
      get(["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"], hidden),
  },
  {
    name: "a length that Connection names",
    served: true,
    bytes: ({ body }) => post([`Content-Length: ${body.length}`, "Connection: Content-Length"], body),
  },
];

const HEADS: readonly [name: string, bytes: (hidden: string) => string][] = [
  ["bare line feeds", (hidden) => `GET /v1/models HTTP/1.1\nHost: 127.0.0.1\n\n${hidden}`],
  ["a bare line feed at its end", (hidden) => `GET /v1/models HTTP/1.1\r\n${HOST}\r\n\n${hidden}`],
  ["bare carriage returns", (hidden) => `GET /v1/models HTTP/1.1\r${HOST}\r\r${hidden}`],
  ["a bare carriage return before its end", (hidden) => `GET /v1/models HTTP/1.1\r\n${HOST}\r\r\n\r\n${hidden}`],
  ["a folded header", (hidden) => get(["X-Other: a\r\n b"], hidden)],
  ["a folded first line", (hidden) => `GET /v1/models HTTP/1.1\r\n ${HOST}\r\n\r\n${hidden}`],
  ["a header without a colon", (hidden) => get(["X-Other"], hidden)],
  ["a header without a name", (hidden) => get([": x"], hidden)],
  ["a blank before the colon", (hidden) => get(["X-Other : x"], hidden)],
  ["a blank inside a name", (hidden) => get(["X Other: x"], hidden)],
  ["a zero byte in a name", (hidden) => get(["X-\0Other: x"], hidden)],
  ["a control character in a name", (hidden) => get(["X-\x01Other: x"], hidden)],
  ["a bracket in a name", (hidden) => get(["X(Other): x"], hidden)],
  ["a zero byte in a value", (hidden) => get(["X-Other: a\0b"], hidden)],
  ["a bare carriage return in a value", (hidden) => get(["X-Other: a\rb"], hidden)],
  ["no Host", (hidden) => `GET /v1/models HTTP/1.1\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`],
  ["two Hosts", (hidden) => get(["Host: 127.0.0.1"], hidden)],
  ["two different Hosts", (hidden) => get(["Host: evil.example"], hidden)],
  [
    "a Host with a path",
    (hidden) => `GET /models HTTP/1.1\r\nHost: 127.0.0.1/v1\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
  ],
  [
    "an empty Host",
    (hidden) => `GET /v1/models HTTP/1.1\r\nHost:\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
  ],
  ["HTTP/0.9", (hidden) => `GET /v1/models\r\n\r\n${hidden}`],
  ["HTTP/0.9 with headers", (hidden) => `GET /v1/models\r\n${HOST}\r\n\r\n${hidden}`],
  ["HTTP/1.2", (hidden) => get([], hidden, "GET /v1/models HTTP/1.2")],
  ["HTTP/1.10", (hidden) => get([], hidden, "GET /v1/models HTTP/1.10")],
  ["HTTP/2.0", (hidden) => get([], hidden, "GET /v1/models HTTP/2.0")],
  ["HTTP/01.1", (hidden) => get([], hidden, "GET /v1/models HTTP/01.1")],
  ["HTTP/1,1", (hidden) => get([], hidden, "GET /v1/models HTTP/1,1")],
  ["http/1.1", (hidden) => get([], hidden, "GET /v1/models http/1.1")],
  ["a word behind the version", (hidden) => get([], hidden, "GET /v1/models HTTP/1.1 x")],
  ["another protocol", (hidden) => get([], hidden, "GET /v1/models FTP/1.1")],
  ["the preface of HTTP/2", (hidden) => `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${hidden}`],
  ["a small method", (hidden) => get([], hidden, "get /v1/models HTTP/1.1")],
  ["a mixed method", (hidden) => get([], hidden, "GeT /v1/models HTTP/1.1")],
  ["an unknown method", (hidden) => get([], hidden, "SMUGGLE /v1/models HTTP/1.1")],
  ["a method with a zero byte", (hidden) => get([], hidden, "GET\0 /v1/models HTTP/1.1")],
  ["a blank before the method", (hidden) => get([], hidden, " GET /v1/models HTTP/1.1")],
  ["two blanks", (hidden) => get([], hidden, "GET  /v1/models HTTP/1.1")],
  ["a tab for a blank", (hidden) => get([], hidden, "GET\t/v1/models\tHTTP/1.1")],
  ["no target", (hidden) => get([], hidden, "GET HTTP/1.1")],
  ["a target without its slash", (hidden) => get([], hidden, "GET v1/models HTTP/1.1")],
  ["a target with a blank", (hidden) => get([], hidden, "GET /v1/models x HTTP/1.1")],
  ["a target with a zero byte", (hidden) => get([], hidden, "GET /v1/models\0 HTTP/1.1")],
  ["a target with a control character", (hidden) => get([], hidden, "GET /v1/models\x01 HTTP/1.1")],
  ["a target of another scheme", (hidden) => get([], hidden, "GET ftp://127.0.0.1/v1/models HTTP/1.1")],
  ["CONNECT", (hidden) => get([], hidden, "CONNECT 127.0.0.1:80 HTTP/1.1")],
  ["CONNECT to a path", (hidden) => get([], hidden, "CONNECT /v1/models HTTP/1.1")],
  ["TRACE", (hidden) => get([], hidden, "TRACE /v1/models HTTP/1.1")],
  ["an asterisk", (hidden) => get([], hidden, "OPTIONS * HTTP/1.1")],
  ["an asterisk for GET", (hidden) => get([], hidden, "GET * HTTP/1.1")],
];

/** The hidden request stands behind an odd head: only who drops the head, or its length, sees it. */
const heads = HEADS.map(
  ([name, bytes]): Form => ({
    name: `a head: ${name}`,
    bytes: ({ hidden }) => bytes(hidden),
  }),
);

export const FORMS: readonly Form[] = [...behindTheChunks, ...insideAChunk, ...lengths, ...chunks, ...AGREED, ...heads];
