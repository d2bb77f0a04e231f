// Where the network cuts an answer changes nothing: every known answer, in two pieces at every byte, in three at many, and
// with a reader that pauses anywhere.

import { afterAll, describe, expect, test } from "bun:test";
import type { AnswerHead } from "../../src/upstream/http/answer-head.ts";
import { AnswerParser } from "../../src/upstream/http/answer-parser.ts";
import { seededRandom } from "../simulation/seeded-random.ts";
import { within } from "../support/wait-for.ts";
import { BAD_ANSWERS, GOOD_ANSWERS, type KnownAnswer } from "./answers.ts";
import { outcomeOf, summary } from "./outcome.ts";
import { ScriptedServer } from "./scripted-server.ts";
import type { Step } from "./server-connection.ts";
import { ask, backendAt, newClient } from "./subject.ts";

/** Longer ones are about their length, which no cut changes. */
const MAX_BYTES = 2_000;
const THREE_PIECES = 300;

const answers = [...GOOD_ANSWERS, ...BAD_ANSWERS].filter(({ bytes }) => bytes.length <= MAX_BYTES);
const random = seededRandom(1);

interface Told {
  status: number | undefined;
  contentType: string | null;
  body: string;
  isComplete: boolean;
  keepsAlive: boolean;
  /** Bytes behind the answer. */
  surplus: number;
  /** Of the error. */
  code: string | undefined;
}

/** What the parser alone tells of an answer in these pieces; `pauses`: it is paused at every piece of the body. */
function tell(pieces: readonly Buffer[], { ending, method }: KnownAnswer, pauses = false): Told {
  const body: Buffer[] = [];
  const told: Told = {
    status: undefined,
    contentType: null,
    body: "",
    isComplete: false,
    keepsAlive: false,
    surplus: 0,
    code: undefined,
  };
  const parser = new AnswerParser({
    headRead(head: AnswerHead) {
      expect(told.status).toBeUndefined();
      told.status = head.status;
      told.contentType = head.header("content-type");
    },
    pieceRead(piece) {
      expect(piece.length).toBeGreaterThan(0);
      body.push(Buffer.from(piece));
      if (pauses) parser.paused = true;
    },
  });
  parser.begin(method === "HEAD");
  try {
    for (const piece of pieces) {
      let taken = parser.push(piece);
      while (parser.paused) {
        parser.paused = false;
        taken += parser.push(piece.subarray(taken));
      }
      told.surplus += piece.length - taken;
    }
    if (ending === "fin") {
      parser.finish();
      while (parser.paused) {
        parser.paused = false;
        parser.push(Buffer.alloc(0));
      }
    }
  } catch (error) {
    told.code = (error as { code: string }).code;
  }
  told.isComplete = told.code === undefined && parser.isOver;
  return { ...told, body: Buffer.concat(body).toString("latin1"), keepsAlive: told.isComplete && parser.keepsAlive };
}

/** A copy of each piece, so that nobody may rely on what lies around it. */
function cut(bytes: Buffer, ...places: readonly number[]): Buffer[] {
  const ends = [...places, bytes.length];
  return ends.map((end, index) => Buffer.from(bytes.subarray(places[index - 1] ?? 0, end)));
}

describe("whatever its pieces, the parser tells the same of an answer with", () => {
  test.each(answers.map((answer) => [answer.name, answer] as const))("%s", (_name, answer) => {
    const { bytes } = answer;
    const whole = tell([bytes], answer);
    const same = (pieces: readonly Buffer[], how: string) => {
      for (const pauses of [false, true]) {
        const told = tell(pieces, answer, pauses);
        // The comparison alone, as expect() would take most of the time.
        if (!Bun.deepEquals(told, whole)) expect({ how, pauses, ...told }).toEqual({ how, pauses, ...whole });
      }
    };
    for (let at = 0; at <= bytes.length; at++) same(cut(bytes, at), `cut at ${at}`);
    for (let each = 0; each < THREE_PIECES; each++) {
      const first = random.between(0, bytes.length);
      const second = random.between(first, bytes.length);
      same(cut(bytes, first, second), `cut at ${first} and ${second}`);
    }
    same(
      Array.from(bytes, (byte) => Buffer.from([byte])),
      "byte by byte",
    );
    if (answer.outcome === "refused") expect(whole.isComplete).toBe(answer.isWellFramed === true);
    else expect(whole).toMatchObject({ status: answer.outcome.status, isComplete: true, surplus: 0 });
  });
});

describe("whatever its pieces, the same comes over a socket of an answer with", () => {
  const client = newClient();
  afterAll(() => client.close());
  test.each(answers.map((answer) => [answer.name, answer] as const))("%s", async (_name, answer) => {
    const { bytes, ending, method } = answer;
    const middles = Array.from({ length: 6 }, () => random.between(1, Math.max(1, bytes.length - 1)));
    const cuts = [[], ...middles.map((at) => [at]), middles.slice(0, 3).toSorted((a, b) => a - b)];
    using server = new ScriptedServer(({ target }) => {
      const pieces = cut(bytes, ...(cuts[Number(target.slice(1))] ?? []));
      const steps: Step[] = pieces.flatMap((piece) => [piece, { turns: 2 }]);
      return ending === "keep" ? steps : [...steps, ending];
    });
    const backend = backendAt(server.url);
    const summaries: string[] = [];
    for (const index of cuts.keys()) {
      const call = ask(client.transport, backend, { path: `/${index}`, ...(method !== undefined && { method }) });
      const outcome = await within("the end of a call", outcomeOf(call));
      // How much of a body comes before it breaks off is chance.
      summaries.push(outcome.end === "complete" ? summary(outcome, ["content-type"]) : "refused");
    }
    expect(new Set(summaries).size).toBe(1);
    expect(summaries[0] === "refused").toBe(answer.outcome === "refused");
  });
});
