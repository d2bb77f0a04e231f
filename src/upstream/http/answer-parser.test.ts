import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { AnswerHead } from "./answer-head.ts";
import { AnswerParser } from "./answer-parser.ts";

interface Read {
  status: number | undefined;
  type: string | null | undefined;
  body: string;
  keepsAlive: boolean;
  /** "over", what is still awaited, or the code of what was wrong. */
  end: string;
  /** Bytes that were not taken. */
  surplus: number;
}

/** What a parser tells of an answer that comes in these pieces. */
function read(pieces: readonly Uint8Array[], { forHead = false, finish = false } = {}): Read {
  let head: AnswerHead | undefined;
  const body: Buffer[] = [];
  const parser = new AnswerParser({
    headRead(each) {
      if (head !== undefined) throw new Error("two heads");
      head = each;
    },
    pieceRead(piece) {
      expect(piece.length).toBeGreaterThan(0);
      body.push(Buffer.from(piece));
    },
  });
  parser.begin(forHead);
  let surplus = 0;
  let end = "";
  try {
    for (const piece of pieces) surplus += piece.length - parser.push(piece);
    if (finish) parser.finish();
    end = parser.isOver ? "over" : "more";
  } catch (error) {
    end = (error as { code: string }).code;
  }
  return {
    status: head?.status,
    type: head?.header("content-type"),
    body: Buffer.concat(body).toString("latin1"),
    keepsAlive: parser.keepsAlive,
    end,
    surplus,
  };
}

const bytes = (text: string) => new Uint8Array(Buffer.from(text, "latin1"));
const whole = (text: string, options = {}) => read([bytes(text)], options);

function cutAt(all: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const places = [0, ...cuts.map((cut) => cut % (all.length + 1)).sort((a, b) => a - b), all.length];
  return places.slice(1).map((place, index) => all.slice(places[index], place));
}

const OK = "HTTP/1.1 200 OK\r\n";
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;

test("a header's value loses the blanks around it, and no byte that only looks like one", () => {
  expect(whole(`${OK}Content-Type: \t voil\xc3\xa0\x85 \t\r\nContent-Length: 0\r\n\r\n`).type).toBe("voil\xc3\xa0\x85");
  expect(whole(`${OK}Content-Type: \t \r\nContent-Length: 0\r\n\r\n`).type).toBe("");
});

const GOOD: Record<string, { text: string; body: string; finish?: boolean }> = {
  "a length": { text: `${OK}Content-Type: a/b\r\nContent-Length: 5\r\n\r\nhello`, body: "hello" },
  "no body": { text: `${OK}content-length:0\r\n\r\n`, body: "" },
  "no reason": { text: "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", body: "x" },
  chunks: { text: `${CHUNKED}5\r\nhello\r\n00A \t; a="b"\r\n0123456789\r\n0\r\n\r\n`, body: "hello0123456789" },
  trailers: { text: `${CHUNKED}1;x\r\nx\r\n000\r\nA: b\r\nContent-Length: 9\r\n\r\n`, body: "x" },
  "interim answers": {
    text: `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n${OK}Content-Length: 2\r\n\r\nhi`,
    body: "hi",
  },
  "no length": { text: `${OK}X: \xe4\t\r\n\r\nuntil the end`, body: "until the end", finish: true },
  "no content": { text: "HTTP/1.1 204 No Content\r\n\r\n", body: "" },
  "not modified": { text: "HTTP/1.1 304 N\r\nContent-Length: 7\r\n\r\n", body: "" },
};

describe("answers", () => {
  for (const [name, { text, body, finish = false }] of Object.entries(GOOD)) {
    test(`${name}: in one piece, and cut at every byte`, () => {
      const expected = whole(text, { finish });
      expect(expected).toMatchObject({ body, end: "over", surplus: 0 });
      const all = bytes(text);
      for (let cut = 0; cut <= all.length; cut++) expect(read(cutAt(all, [cut]), { finish })).toEqual(expected);
      expect(
        read(
          Array.from(all, (byte) => Uint8Array.of(byte)),
          { finish },
        ),
      ).toEqual(expected);
    });
  }

  test("bodies of any length, cut anywhere", () => {
    const chunks = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 6 });
    fc.assert(
      fc.property(chunks, fc.array(fc.nat(), { maxLength: 8 }), fc.boolean(), (parts, cuts, isChunked) => {
        const body = Buffer.concat(parts);
        const coded = parts.map((part) => [`${part.length.toString(16)}\r\n`, part, "\r\n"] as const);
        const all = Buffer.concat(
          isChunked
            ? [CHUNKED, ...coded.flat(), "0\r\n\r\n"].map((part) => Buffer.from(part as string))
            : [Buffer.from(`${OK}Content-Length: ${body.length}\r\n\r\n`), body],
        );
        expect(read(cutAt(new Uint8Array(all), cuts))).toMatchObject({ body: body.toString("latin1"), end: "over" });
      }),
    );
  });

  test("whatever comes, in pieces it reads as in one", () => {
    const token = fc.constantFrom(
      ...["HTTP/1.1 200 OK\r\n", "HTTP/1.0 200 OK\r\n", "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n"],
      ...[
        "\r\n",
        "\r",
        "\n",
        "3\r\nabc\r\n",
        "0\r\n",
        "abc",
        " ",
        ":",
        "A: b\r\n",
        "HTTP/1.1 100 C\r\n\r\n",
        "\0",
        ";",
      ],
    );
    const input = fc.tuple(fc.array(token, { maxLength: 8 }), fc.array(fc.nat(), { maxLength: 6 }), fc.boolean());
    fc.assert(
      fc.property(input, ([tokens, cuts, finish]) => {
        const all = bytes(tokens.join(""));
        const { surplus, ...expected } = read([all], { finish });
        const inPieces = read(cutAt(all, cuts), { finish });
        expect(inPieces).toEqual({ ...expected, surplus: inPieces.surplus });
        if (expected.end === "over") expect(inPieces.surplus).toBe(surplus);
      }),
      { numRuns: 2000 },
    );
  });

  test("an answer to HEAD has no body", () => {
    expect(whole(`${OK}Content-Length: 5\r\n\r\n`, { forHead: true })).toMatchObject({ end: "over", keepsAlive: true });
    expect(whole(CHUNKED, { forHead: true })).toMatchObject({ end: "over", keepsAlive: true });
  });

  test("what comes behind an answer is not taken", () => {
    expect(whole(`${OK}Content-Length: 1\r\n\r\nxyz`)).toMatchObject({ body: "x", end: "over", surplus: 2 });
    expect(whole(`${CHUNKED}0\r\n\r\n${OK}`)).toMatchObject({ body: "", end: "over", surplus: OK.length });
    expect(whole("HTTP/1.1 204 N\r\nContent-Length: 1\r\n\r\nx")).toMatchObject({ end: "over", surplus: 1 });
  });
});

describe("whether the connection lasts", () => {
  const cases: [string, boolean][] = [
    ["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true],
    ["HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive, Close\r\n\r\n", false],
    ["HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: closed\r\n\r\n", true],
    ["HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false],
    ["HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: Keep-Alive\r\n\r\n", true],
    ["HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n", false], // ends with the connection
  ];
  test.each(cases)("%j: %p", (text, lasts) => {
    expect(whole(text).keepsAlive).toBe(lasts);
  });
});

describe("what is no answer", () => {
  const length = "Content-Length: 1\r\n";
  const malformed: string[] = [
    ..."SSH-2.0-x|-ERR|\x15\x03\x01|HTTP/2 200 OK\r\n|HTTP/1.1 20 OK\r\n|HTTP/1.1 2000\r\n|HTTP/1.1  200 OK\r\n".split(
      "|",
    ),
    ..."HTTP/1.1 600 X\r\n\r\n|HTTP/1.1 099 X\r\n\r\n|http/1.1 200 OK\r\n|\r\nHTTP/1.1 200 OK\r\n|HTTP/1.1 200OK\r\n\r\n".split(
      "|",
    ),
    ...[
      "A : b\r\n",
      " A: b\r\n",
      ": b\r\n",
      "A b\r\n",
      "A\r\n",
      "A: b\n",
      "A: b\rc\r\n",
      "A: \0\r\n",
      "A: \x7f\r\n",
      "\xe4: b\r\n",
    ],
    ...["A: b\r\n c\r\n", "\n", "\rx"],
    ...[`${length}Transfer-Encoding: chunked\r\n\r\n`, "Transfer-Encoding: gzip, chunked\r\n\r\n"],
    ...["Transfer-Encoding: identity\r\n\r\n", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"],
  ].map((text, index) => (index < 12 ? text : OK + text));

  test.each([...malformed, "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"])("%j", (text) => {
    expect(whole(`${text}${text.endsWith("\r\n") ? "\r\n" : ""}`).end).toBe("Malformed_HTTP_Response");
  });

  const lengths = ["-1", "+1", "1, 1", "1x", "0x1", "", "1 1", "1e3", "9999999999999999", "१"];
  test.each(lengths)("the length %j", (value) => {
    expect(whole(`${OK}Content-Length: ${value}\r\n\r\n`).end).toBe("InvalidContentLength");
  });

  test("two lengths, even the same", () => {
    expect(whole(`${OK}${length}${length}\r\nx`).end).toBe("InvalidContentLength");
    expect(whole(`${OK}${length}Content-Length: 2\r\n\r\nxy`).end).toBe("InvalidContentLength");
  });

  const chunks = [
    "x\r\n",
    "\r\n",
    " 1\r\n",
    "1 x\r\n",
    "-1\r\n",
    "0x1\r\n",
    "1\n",
    "1;\0\r\n",
    "1\rx",
    "20000000000000\r\n",
  ];
  test.each([...chunks, "1\r\nab\r\n", "1\r\na\n", "1\r\na\rx", "0\r\n\n", "0\r\nA: \0\r\n", "0\r\nA\rB"])(
    "chunk %j",
    (text) => {
      expect(whole(CHUNKED + text).end).toBe("Malformed_HTTP_Response");
    },
  );

  test("a protocol that nobody asked for", () => {
    expect(whole("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n").end).toBe("UnrequestedUpgrade");
  });

  test("what goes on and on", () => {
    const endless = (start: string, more: string) => {
      const pieces = [bytes(start), ...Array.from({ length: 20_000 }, () => bytes(more))];
      return read(pieces).end;
    };
    expect(endless(`${OK}A: `, "xxxxxxxx")).toBe("Malformed_HTTP_Response");
    expect(endless(OK, "A: b\r\n")).toBe("Malformed_HTTP_Response");
    expect(endless("", "HTTP/1.1 100 Continue\r\n\r\n")).toBe("Malformed_HTTP_Response");
    expect(endless(CHUNKED, "0000")).toBe("Malformed_HTTP_Response");
    expect(endless(`${CHUNKED}1;`, "xxxx")).toBe("Malformed_HTTP_Response");
    expect(endless(`${CHUNKED}0\r\n`, "A: b\r\n")).toBe("Malformed_HTTP_Response");
    expect(whole(`${OK}A: ${"x".repeat(70_000)}\r\n\r\n`).end).toBe("Malformed_HTTP_Response");
  });

  test("an answer that breaks off", () => {
    for (const text of ["", "HTTP/1.1 2", OK, `${OK}Content-Length: 3\r\n\r\nab`, `${CHUNKED}3\r\nabc\r\n`]) {
      expect(whole(text, { finish: true }).end).toBe("ECONNRESET");
    }
  });
});

test("headers by name, in any case, those of one name together", () => {
  let head: AnswerHead | undefined;
  const parser = new AnswerParser({
    headRead(each) {
      head = each;
    },
    pieceRead() {},
  });
  parser.begin(false);
  parser.push(bytes(`${OK}X-One:  a b \t\r\nx-two: 1\r\nX-Empty:\r\nX-TWO: 2\r\nX: \xdf\r\nx-two: 3\r\n\r\n`));
  expect(["x-one", "x-two", "x-empty", "x", "one", "x-o"].map((name) => head?.header(name) ?? null)).toEqual([
    "a b",
    "1, 2, 3",
    "",
    "\xdf",
    null,
    null,
  ]);
});

test("a sink that pauses hears no more, and nothing is taken that it has not heard", () => {
  const heard: string[] = [];
  const parser = new AnswerParser({
    headRead() {
      parser.paused = true;
    },
    pieceRead(piece) {
      heard.push(Buffer.from(piece).toString());
      parser.paused = true;
    },
  });
  parser.begin(false);
  let rest = bytes(`${CHUNKED}1\r\na\r\n2\r\nbc\r\n0\r\n\r\n`);
  rest = rest.slice(parser.push(rest));
  expect(heard).toEqual([]);
  for (const expected of [["a"], ["a", "bc"], ["a", "bc"]]) {
    parser.paused = false;
    rest = rest.slice(parser.push(rest));
    expect(heard).toEqual(expected);
  }
  expect([parser.isOver, rest.length]).toEqual([true, 0]);
});
