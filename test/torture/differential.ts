// Random answers to two clients, ours and the runtime's fetch: what becomes of each must be the same, but for the
// differences that stand here by name.

import type { Transport } from "../../src/backends/transport.ts";
import { seededRandom } from "../simulation/seeded-random.ts";
import { within } from "../support/wait-for.ts";
import { lonelyFetchTransport } from "./fetch-call.ts";
import { type Outcome, outcomeOf, summary } from "./outcome.ts";
import { COMPARED_HEADERS, type RandomAnswer, randomAnswer } from "./random-answers.ts";
import { ScriptedServer } from "./scripted-server.ts";
import type { Step } from "./server-connection.ts";
import { ask, backendAt } from "./subject.ts";

interface Difference {
  name: string;
  /** Who reads it; the other refuses. Fetch reads what RFC 9112 forbids or leaves open, the client what it allows. */
  readBy: "fetch" | "client";
  /** Whether these bytes have it. */
  isIn(answer: { head: string; body: string; answer: RandomAnswer }): boolean;
}

const count = (text: string, pattern: RegExp) => text.match(pattern)?.length ?? 0;
const has = (name: string) => new RegExp(`^${name}[ \\t]*:`, "im");
/** A control character behind the last chunk, but for the CR and LF that end a line together. */
const ODD_TRAILER = /(?:^|\n)0+\r\n[\s\S]*(?:\r[^\n]|(?<!\r)\n|(?![\t\r\n])\p{Cc})/u;
const isChunked = (head: string) => has("transfer-encoding").test(head);

export const DIFFERENCES: readonly Difference[] = [
  { name: "a bare LF for a line end", readBy: "fetch", isIn: ({ head }) => /[^\r]\n/.test(head) },
  {
    name: "a status below 100 or above 599",
    readBy: "fetch",
    isIn: ({ head }) => /^HTTP\/1\.\d +(0|[6-9])\d\d/.test(head),
  },
  { name: "more than one space before the status", readBy: "fetch", isIn: ({ head }) => /^HTTP\/1\.\d {2}/.test(head) },
  {
    name: "a length beside a transfer coding",
    readBy: "fetch",
    isIn: ({ head }) => has("content-length").test(head) && isChunked(head),
  },
  { name: "more than one length", readBy: "fetch", isIn: ({ head }) => count(head, /^content-length:/gim) > 1 },
  {
    name: "a transfer coding other than chunked",
    readBy: "fetch",
    isIn: ({ head }) => /^transfer-encoding:(?![ \t]*chunked[ \t]*$)/im.test(head),
  },
  {
    name: "the end of the connection in place of the line that ends the chunks",
    readBy: "fetch",
    isIn: ({ head, body, answer }) => isChunked(head) && answer.ending !== "keep" && !body.endsWith("\r\n\r\n"),
  },
  {
    name: "a control character in a chunk extension or a trailer",
    readBy: "fetch",
    isIn: ({ head, body }) => isChunked(head) && (/;[^\r\n]*\p{Cc}/u.test(body) || ODD_TRAILER.test(body)),
  },
  { name: "chunks in HTTP/1.0", readBy: "fetch", isIn: ({ head }) => isChunked(head) && head.startsWith("HTTP/1.0") },
  {
    name: "a length that is no number, where there is no body",
    readBy: "fetch",
    isIn: ({ head, answer }) =>
      (answer.method === "HEAD" || / [23]04/.test(head)) && /^content-length:(?![ \t]*\d{1,15}[ \t]*$)/im.test(head),
  },
  {
    name: "a reset in place of the end of a body without a length",
    readBy: "fetch",
    isIn: ({ head, answer }) => answer.ending === "reset" && !has("content-length").test(head) && !isChunked(head),
  },
  {
    name: "a content coding that is not decoded",
    readBy: "fetch",
    isIn: ({ head }) => /^content-encoding:(?![ \t]*(?:x-gzip|gzip|deflate|br|identity)?[ \t]*\r)/im.test(head),
  },
  {
    name: "bytes behind the end of gzip",
    readBy: "fetch",
    isIn: ({ head }) => /^content-encoding:[ \t]*(?:x-)?gzip/im.test(head),
  },
  {
    name: "a space behind the size of a chunk",
    readBy: "client",
    isIn: ({ head, body }) => isChunked(head) && /(?:^|\n)[0-9a-f]+[ \t]+(?:;|\r)/i.test(body),
  },
];

const INTERIM_HEADS = /^(HTTP\/1\.\d 1\d\d[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n)+/;

const isRefused = (outcome: Outcome) => outcome.end !== "complete";

export interface DifferentialReport {
  answers: number;
  /** How many both have read to the end, and neither. */
  read: number;
  refused: number;
  /** Name of a difference -> how often it was seen. */
  differences: Record<string, number>;
  /** Each with what is needed to see it again. */
  unexplained: string[];
  violations: string[];
}

const CALL_MS = 20_000;
const AT_ONCE = 32;
const TOLD = 20;

/** @param transport - of a client that keeps no connections: what one answer leaves behind must not show in another */
export async function compare(transport: Transport, seed: number, count: number): Promise<DifferentialReport> {
  const report: DifferentialReport = {
    answers: 0,
    read: 0,
    refused: 0,
    differences: {},
    unexplained: [],
    violations: [],
  };
  const answerOf = (index: number) => randomAnswer(seededRandom(seed * 1_000_003 + index));
  using server = new ScriptedServer({
    script: ({ target }) => stepsOf(answerOf(Number(target.slice(1)))),
    forgets: true,
  });
  const backend = backendAt(server.url);
  async function outcome(through: Transport, index: number, { method }: RandomAnswer): Promise<Outcome> {
    const call = ask(through, backend, { path: `/${index}`, method });
    return await within(`the end of answer ${index} of seed ${seed}`, outcomeOf(call), CALL_MS);
  }
  let next = 0;
  async function worker(): Promise<void> {
    while (next < count) {
      const index = next++;
      const answer = answerOf(index);
      const ours = await outcome(transport, index, answer);
      const theirs = await outcome(lonelyFetchTransport, index, answer);
      settle(report, index, answer, ours, theirs);
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  report.violations.push(...server.violations.slice(0, TOLD));
  return report;
}

function stepsOf({ bytes, cuts, pauses, ending }: RandomAnswer): Step[] {
  const ends = [...cuts, bytes.length];
  const steps: Step[] = ends.flatMap((end, index) => [bytes.subarray(cuts[index - 1] ?? 0, end), { turns: pauses }]);
  if (ending === "keep") return steps;
  // A reset overtakes what it follows: so that both clients see the same, it waits.
  return ending === "fin" ? [...steps, ending] : [...steps, { turns: 5 }, ending];
}

function settle(report: DifferentialReport, index: number, answer: RandomAnswer, ours: Outcome, theirs: Outcome): void {
  report.answers++;
  const [our, their] = [ours, theirs].map((each) => (isRefused(each) ? "refused" : summary(each, COMPARED_HEADERS)));
  if (our === their) {
    if (our === "refused") report.refused++;
    else report.read++;
    return;
  }
  const text = answer.bytes.toString("latin1").replace(INTERIM_HEADS, "");
  const [head = ""] = text.split(/(?<=\r?\n\r?\n)/, 1);
  const seen = { head, body: text.slice(head.length), answer };
  const readBy = our === "refused" ? "fetch" : their === "refused" ? "client" : undefined;
  const found = DIFFERENCES.find((each) => each.readBy === readBy && each.isIn(seen));
  if (found !== undefined) {
    report.differences[found.name] = (report.differences[found.name] ?? 0) + 1;
  } else if (report.unexplained.length < TOLD) {
    const { method, ending, cuts } = answer;
    report.unexplained.push(
      `${index}: ${method}, ${ending}, cuts ${cuts}\n  ${JSON.stringify(text.slice(0, 250))}\n  ours   ${our} ${"code" in ours ? ours.code : ""}\n  theirs ${their} ${"code" in theirs ? theirs.code : ""}`,
    );
  } else {
    report.unexplained.push(String(index));
  }
}
