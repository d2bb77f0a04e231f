// Asks the gateway itself a request of a replay: the whole way of a request, as the caller that the replay names.

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

/** No address: limits by address do not concern an operator's replay. */
const SERVER = withoutListener(undefined);

export function createAskAgain({ running, queueClass, costOf }: AskAgainParts): AskAgain {
  return async (asked, signal) => {
    const { handle, paths } = running();
    let facts: AnsweredAgain["facts"] | undefined;
    const later: LaterRequest = {
      creator: asked.creator,
      queueClass: queueClass(),
      vendorTurn: undefined,
      over(record) {
        facts = factsOf(record, costOf);
      },
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
    const bytes = await response.bytes().catch(() => new Uint8Array(0)); // a stream that broke off
    const { headers, status } = response;
    return {
      status,
      contentType: headers.get("content-type") ?? "",
      body: bytes,
      requestId: headers.get("x-signalbox-request-id") ?? "",
      retryAfterMs: retryAfterOf(headers),
      facts: facts ?? NOTHING_KNOWN,
    };
  };
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
