// Asks the gateway itself one line of a batch: the whole way of a request, as the caller who created the batch.

import type { LineAnswer, LineSums } from "../batches/batch-store.ts";
import { NO_SUMS } from "../batches/batch-store.ts";
import type { AskLine } from "../batches/runner.ts";
import { isObject, parseJson } from "../lib/json.ts";
import type { FrameHandler } from "../server/handler.ts";
import { type LaterRequest, retryAfterOf, withoutListener } from "../server/later-request.ts";
import type { RequestRecord } from "../stats/request-record.ts";

/** Of one line: no request has so many tokens, and a sum of many such numbers is still exact. */
const MOST_COUNTED = 1e12;

interface AskingParts {
  /** Of the configuration in force. */
  handle: FrameHandler;
  /** batches.class */
  queueClass(): string;
  /** In 10^-9 of the currency's unit. */
  costOf(record: RequestRecord): number;
}

export function createLineAsker({ handle, queueClass, costOf }: AskingParts): AskLine {
  return async ({ endpoint, creator, clientAddress, headers: given }, { body }, signal, vendorTurn) => {
    let sums = NO_SUMS;
    let isOutage = false;
    const later: LaterRequest = {
      creator,
      queueClass: queueClass(),
      vendorTurn,
      over(record) {
        sums = sumsOf(record, costOf);
        isOutage = record.isOutage;
      },
    };
    const headers = { ...given, "Content-Type": "application/json", "Content-Length": String(body.size) };
    const request = new Request(`http://batch${endpoint}`, { method: "POST", headers, body, signal });
    const target = { route: endpoint, parameters: {}, path: endpoint, flaw: undefined };
    const response = await handle(request, withoutListener(clientAddress), target, later);
    const text = await response.text();
    return {
      status: response.status,
      requestId: response.headers.get("x-request-id") ?? "",
      body: onOneLine(text),
      isOutage,
      retryAfterMs: retryAfterOf(response.headers),
      sums,
    } satisfies LineAnswer;
  };
}

/** JSON as it came, where it stands on one line: line ends in it are space between its parts. */
function onOneLine(text: string): string {
  const value = parseJson(text);
  if (!isObject(value)) return JSON.stringify(value ?? text);
  return /[\r\n]/.test(text) ? text.replaceAll(/[\r\n]+/g, " ") : text;
}

/** What the answer itself has used: kept answers and shared ones cost nothing. */
function sumsOf(record: RequestRecord, costOf: AskingParts["costOf"]): LineSums {
  const { usage } = record;
  if (usage === undefined) return NO_SUMS;
  const { input, output } = usage;
  const isFree = record.cache === "HIT" || record.isShared;
  return {
    input: toCount(input.total),
    cachedInput: toCount(input.cacheRead),
    output: toCount(output.total),
    reasoning: toCount(output.reasoning),
    cost: isFree ? 0 : toCount(costOf(record)),
  };
}

/** Backends write what they please, and shared batches add up in whole numbers. */
function toCount(value: number | undefined): number {
  if (value === undefined || !(value > 0)) return 0;
  return value <= MOST_COUNTED ? Math.round(value) : 0;
}
