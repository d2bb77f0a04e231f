// Answers made by chance, good and faulty ones: what a seed makes is the same every time.

import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import type { SeededRandom } from "../simulation/seeded-random.ts";

export interface RandomAnswer {
  bytes: Buffer;
  /** Where the bytes are cut into pieces, in order. */
  cuts: number[];
  /** Turns of the event loop between the pieces. */
  pauses: number;
  ending: "keep" | "fin" | "reset";
  method: "GET" | "HEAD" | "POST";
}

interface Draft {
  version: string;
  status: string;
  reason: string;
  headers: string[];
  body: Buffer;
  ending: RandomAnswer["ending"];
}

/** The headers whose values are compared. */
export const COMPARED_HEADERS: readonly string[] = ["content-type", "x-a", "x-b", "retry-after", "location"];

const STATUSES = [
  "200",
  "200",
  "200",
  "200",
  "201",
  "204",
  "206",
  "302",
  "304",
  "400",
  "401",
  "404",
  "429",
  "500",
  "503",
  "529",
  "599",
];
const VALUES = [
  "",
  "1",
  "text/plain",
  "a b",
  " a\tb ",
  "application/json; charset=utf-8",
  "\u00e9\u00fc",
  "x".repeat(300),
  '"q,u"',
  "a:b",
  ":",
];
const CODINGS: readonly (readonly [name: string, encode: (plain: Buffer) => Buffer])[] = [
  ["gzip", (plain) => gzipSync(plain)],
  ["X-GZip", (plain) => gzipSync(plain)],
  ["deflate", (plain) => deflateSync(plain)],
  ["deflate", (plain) => deflateRawSync(plain)],
  ["br", (plain) => brotliCompressSync(plain)],
  ["zstd", (plain) => zstdCompressSync(plain)],
  ["identity", (plain) => plain],
  ["", (plain) => plain],
  ["gzip", (plain) => Buffer.concat([gzipSync(plain), gzipSync("another member")])],
  ["gzip", (plain) => Buffer.concat([gzipSync(plain), Buffer.from("surplus")])],
  ["gzip", (plain) => plain],
  ["rot13", (plain) => plain],
];
const MAX_CUTS = 4;

function randomBytes(random: SeededRandom, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => random.between(0, 255)));
}

function chunked(random: SeededRandom, body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    const size = random.between(1, body.length - at);
    const digits = random.chance(0.5) ? size.toString(16) : size.toString(16).toUpperCase();
    const extension = random.pick(["", "", "", ";a", ";a=b", ';a="b c"', ";a=b;c"]);
    parts.push(
      Buffer.from(`${random.chance(0.1) ? "00" : ""}${digits}${extension}\r\n`),
      body.subarray(at, at + size),
      Buffer.from("\r\n"),
    );
    at += size;
  }
  const trailer = random.pick(["", "", "", "X-A: trailer\r\n", "X-C: 1\r\nX-D: 2\r\n"]);
  return Buffer.concat([...parts, Buffer.from(`0\r\n${trailer}\r\n`)]);
}

/** A good answer, before its faults. */
function draft(random: SeededRandom): Draft {
  const headers: string[] = [];
  for (let left = random.between(0, 4); left > 0; left--) {
    const name = random.pick(COMPARED_HEADERS);
    headers.push(
      `${random.chance(0.5) ? name : name.toUpperCase()}:${random.pick(["", " ", "  ", "\t"])}${random.pick(VALUES)}`,
    );
  }
  const status = random.pick(STATUSES);
  const hasNoBody = status === "204" || status === "304";
  const plain = hasNoBody ? Buffer.alloc(0) : randomBytes(random, random.pick([0, 1, 2, 10, 100, 1000, 5000]));
  const [coding, encode] = random.chance(0.05) && !hasNoBody ? random.pick(CODINGS) : [];
  if (coding !== undefined) headers.push(`Content-Encoding: ${coding}`);
  const body = encode?.(plain) ?? plain;
  const framing = hasNoBody ? "none" : random.pick(["length", "length", "chunked", "chunked", "close"]);
  const place = random.between(0, headers.length);
  if (framing === "length") headers.splice(place, 0, `Content-Length: ${body.length}`);
  if (framing === "chunked") headers.splice(place, 0, "Transfer-Encoding: chunked");
  if (random.chance(0.1)) headers.push(`Connection: ${random.pick(["close", "keep-alive", "Keep-Alive, x"])}`);
  return {
    version: framing !== "chunked" && random.chance(0.05) ? "HTTP/1.0" : "HTTP/1.1",
    status,
    reason: random.pick([" OK", " ", " Not so good", ""]),
    headers,
    body: framing === "chunked" ? chunked(random, body) : body,
    ending: framing === "close" ? "fin" : random.pick(["keep", "keep", "keep", "fin"]),
  };
}

/** What is done to a draft before it is written. */
const DRAFT_FAULTS: readonly ((draft: Draft, random: SeededRandom) => void)[] = [
  ({ headers }, random) =>
    headers.push(
      `Content-Length: ${random.pick(["0", "3", "-1", "+3", "x", "", "1e1", "3,3", "99999999999999999999", "0x3"])}`,
    ),
  ({ headers }, random) =>
    headers.push(
      `Transfer-Encoding: ${random.pick(["chunked", "identity", "gzip", "gzip, chunked", "chunked, gzip", "x", ""])}`,
    ),
  ({ headers }, random) =>
    headers.push(
      random.pick([
        "NoColon",
        ": no name",
        "X A: 1",
        "X-A : 1",
        " X-A: 1",
        "X-A: \x00",
        "X-A: \x7f",
        "X-\u00e9: 1",
        "X-A: 1\n",
        "X-A: 1\rX-B: 2",
        "(x): 1",
      ]),
    ),
  (each, random) => {
    each.version = random.pick([
      "HTTP/1.2",
      "HTTP/2.0",
      "HTTP/0.9",
      "http/1.1",
      "HTTP/11",
      "HTTP1.1",
      "HTTP/1.10",
      "HTTP/1.0",
      "",
    ]);
  },
  (each, random) => {
    each.status = random.pick(["099", "000", "600", "999", "20", "2000", "2x0", "", "101", " 200"]);
  },
  (each) => {
    each.body = each.body.subarray(0, Math.floor(each.body.length / 2));
  },
  (each, random) => {
    const odd = ["3;a\x01b\r\nabc\r\n0\r\n\r\n", "3\r\nabc\r\n0\r\nX-A: \rb\r\n\r\n", "3 4\r\nabc\r\n0\r\n\r\n"];
    if (each.headers.includes("Transfer-Encoding: chunked")) each.body = Buffer.from(random.pick(odd));
  },
  (each, random) => {
    each.ending = random.pick(["fin", "reset"]);
  },
  (each, random) => {
    each.body = Buffer.concat([
      each.body,
      Buffer.from(random.pick(["surplus", "\r\n", "0\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"])),
    ]);
  },
];

function written({ version, status, reason, headers, body }: Draft): Buffer {
  const head = [`${version} ${status}${reason}`, ...headers, "", ""].join("\r\n");
  return Buffer.concat([Buffer.from(head, "latin1"), body]);
}

/** What is done to the bytes. */
const BYTE_FAULTS: readonly ((bytes: Buffer, random: SeededRandom) => Buffer)[] = [
  (bytes, random) => bytes.subarray(0, random.between(0, bytes.length)),
  (bytes, random) => {
    const at = random.between(0, Math.min(bytes.length, 200) - 1);
    const changed = Buffer.from(bytes);
    changed[at] = random.chance(0.5) ? random.between(0, 255) : random.pick([0, 9, 10, 13, 32, 48, 58, 59]);
    return changed;
  },
  (bytes, random) => {
    const at = random.between(0, Math.min(bytes.length, 200));
    return Buffer.concat([
      bytes.subarray(0, at),
      Buffer.from(random.pick(["\r", "\n", "\r\n", " ", "\0", ":", "0", "a"])),
      bytes.subarray(at),
    ]);
  },
  (bytes, random) => {
    const at = random.between(0, Math.min(bytes.length, 200) - 1);
    return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]);
  },
  (_bytes, random) => randomBytes(random, random.between(1, 300)),
];

export function randomAnswer(random: SeededRandom): RandomAnswer {
  const answer = draft(random);
  const faults = random.pick([0, 0, 0, 1, 1, 2]);
  let bytes: Buffer | undefined;
  for (let left = faults; left > 0; left--) {
    if (random.chance(0.6) && bytes === undefined) random.pick(DRAFT_FAULTS)(answer, random);
    else bytes = random.pick(BYTE_FAULTS)(bytes ?? written(answer), random);
    // What a fault leaves unfinished is not waited for.
    if (answer.ending === "keep") answer.ending = "fin";
  }
  bytes ??= written(answer);
  if (random.chance(0.08)) {
    const interim = random.pick(["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nX-A: early\r\n\r\n"]);
    bytes = Buffer.concat([Buffer.from(interim), bytes]);
  }
  const cuts = Array.from({ length: random.between(0, MAX_CUTS) }, () => random.between(0, (bytes as Buffer).length));
  // A reset overtakes what it follows; so that both clients may see the same, it waits.
  return {
    bytes,
    cuts: cuts.toSorted((a, b) => a - b),
    pauses: random.between(0, 2),
    ending: answer.ending,
    method: random.pick(["GET", "POST", "POST", "HEAD"]),
  };
}
