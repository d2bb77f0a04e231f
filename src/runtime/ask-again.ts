// Asks the gateway itself a request of a replay: the whole way of a request, as the caller that the replay names.

import { orAborted } from "../lib/abortable-delay.ts";
import { readBounded } from "../lib/read-bounded.ts";
import { RECORD_HEADER } from "../recording/recorder.ts";
import type { AnsweredAgain, AskAgain, ReplayedRequest } from "../recording/replay-one.ts";
import type { FrameHandler } from "../server/handler.ts";
import { type LaterRequest, retryAfterOf, withoutListener } from "../server/later-request.ts";
import { fits, readPath } from "../server/path-pattern.ts";
import type { RequestTarget } from "../server/request-target.ts";
import type { RequestRecord } from "../stats/request-record.ts";

interface AskAgainParts {
  /** Of the configuration in force. */
  running(): { handle: FrameHandler; paths: readonly string[] };
  /** batches.class */
  queueClass(): string;
  /** In 10^-9 of the currency's unit. */
  costOf(record: RequestRecord): number;
}

/** Of one answer; a stream that is longer is given up. */
const MOST_BYTES = 32 * 1024 ** 2;

/** No address: limits by address do not concern an operator's replay. */
const SERVER = withoutListener(undefined);

export function createAskAgain({ running, queueClass, costOf }: AskAgainParts): AskAgain {
  return async (asked, signal) => {
    const { handle, paths } = running();
    const over = Promise.withResolvers<AnsweredAgain["facts"]>();
    const later: LaterRequest = {
      creator: asked.creator,
      queueClass: queueClass(),
      vendorTurn: undefined,
      over: (record) => over.resolve(factsOf(record, costOf)),
    };
    const { body } = asked;
    const target = targetOf(asked, paths);
    const request = new Request(`http://replay${target.path}`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        "Content-Length": String(body.length),
        [RECORD_HEADER]: "no",
      },
      body: body as Uint8Array<ArrayBuffer>,
      signal,
    });
    const response = await handle(request, SERVER, target, later);
    const answer = await whatCame(response.body);
    const { headers, status } = response;
    return {
      status,
      contentType: headers.get("content-type") ?? "",
      body: answer,
      requestId: headers.get("x-signalbox-request-id") ?? "",
      retryAfterMs: retryAfterOf(headers),
      facts: (await orAborted(over.promise, signal)) ?? NOTHING_KNOWN,
    };
  };
}

/** Of a stream that broke off what came before. Undefined of an answer that is too long. */
async function whatCame(body: Response["body"]): Promise<Uint8Array | undefined> {
  const pieces: Uint8Array[] = [];
  try {
    return await readBounded(body, MOST_BYTES, (_, piece) => void pieces.push(piece));
  } catch {
    return Buffer.concat(pieces);
  }
}

const NOTHING_KNOWN: AnsweredAgain["facts"] = {
  ...{ backend: null, inputTokens: null, outputTokens: null, cost: 0, firstByteMs: null, durationMs: 0 },
};

function factsOf(record: RequestRecord, costOf: AskAgainParts["costOf"]): AnsweredAgain["facts"] {
  return {
    backend: record.backend ?? null,
    inputTokens: record.promptTokens ?? null,
    outputTokens: record.completionTokens ?? null,
    cost: record.cache === "HIT" || record.isShared ? 0 : costOf(record),
    firstByteMs: record.firstByteMs ?? null,
    durationMs: record.durationMs ?? 0,
  };
}

/** Where the path names the model, it names the other one. */
function targetOf({ path, model }: ReplayedRequest, paths: readonly string[]): RequestTarget {
  if (paths.includes(path)) return { route: path, parameters: {}, path, flaw: undefined };
  const fitting = paths.filter((pattern) => pattern.includes("{model") && fits(readPath(pattern), path));
  // A path with a verb fits one without it, too.
  const route = fitting.find((pattern) => /:\w+$/.test(pattern)) ?? fitting[0];
  if (route === undefined) return { route, parameters: {}, path, flaw: undefined };
  const [before = "", verb = ""] = route.split(/\{model[^}]*\}/);
  const named = model ?? decodeURIComponent(path.slice(before.length, path.length - verb.length));
  const asked = `${before}${named.split("/").map(encodeURIComponent).join("/")}${verb}`;
  return { route, parameters: { model: named }, path: asked, flaw: undefined };
}
