// Anthropic's message batches: the requests stand in the body that creates one, and the results are one stream. Shapes:
// resources/messages/batches of the package @anthropic-ai/sdk.

import type { Backend } from "../backends/backend.ts";
import { readSpooled } from "../batches/vendor/group-files.ts";
import { type VendorGroup, type VendorResult, VendorTrouble } from "../batches/vendor/vendor-api.ts";
import { isObject, type JsonObject, parseJson } from "../lib/json.ts";
import { memberBytes } from "../lib/json-members.ts";
import type { VendorCalls } from "./vendor-call.ts";
import { isOlder, joinLines, lineId, positionIn, type VendorWire } from "./wire.ts";

const BATCHES = "/v1/messages/batches";
const ENDED = "ended";
const PAGE = 100;

/** Of single requests, by the type of their error: a result has no status. */
const STATUSES: ReadonlyMap<unknown, number> = new Map([
  ["invalid_request_error", 400],
  ["authentication_error", 401],
  ["billing_error", 402],
  ["permission_error", 403],
  ["not_found_error", 404],
  ["request_too_large", 413],
  ["rate_limit_error", 429],
  ["api_error", 500],
  ["timeout_error", 504],
  ["overloaded_error", 529],
]);

const decoder = new TextDecoder();

export function createInlineWire(calls: VendorCalls): VendorWire {
  const pathOf = (id: string) => `${BATCHES}/${encodeURIComponent(id)}`;

  async function* results(backend: Backend, group: VendorGroup, id: string, signal: AbortSignal) {
    const { headers } = group;
    for await (const line of calls.lines(backend, { method: "GET", path: `${pathOf(id)}/results`, headers, signal })) {
      const result = resultOf(group, line);
      if (result !== undefined) yield result;
    }
  }

  /** Its results have the ids of its lines, and nothing else does. */
  async function isOurs(backend: Backend, group: VendorGroup, id: string, signal: AbortSignal): Promise<boolean> {
    for await (const _ of results(backend, group, id, signal)) return true;
    return false;
  }

  return {
    // Creating uploads.
    upload: async () => "",
    async create(backend, group, _, lines, signal) {
      const requests = joinLines(await lines(), (line) => {
        const { position, body } = readSpooled(line);
        return [`,{"custom_id":${JSON.stringify(lineId(group, position))},"params":`, body, "}"];
      });
      const body = Buffer.concat([Buffer.from('{"requests":['), requests.subarray(1), Buffer.from("]}")]);
      return idOf(await calls.json(backend, { method: "POST", path: BATCHES, headers: group.headers, body, signal }));
    },
    async find(backend, group, sinceMs, signal) {
      let after = "";
      for (;;) {
        const path = `${BATCHES}?limit=${PAGE}${after}`;
        const told = await calls.json(backend, { method: "GET", path, headers: group.headers, signal });
        const page = (Array.isArray(told.data) ? told.data : []).filter(isObject);
        for (const batch of page) {
          if (isOlder(Date.parse(String(batch.created_at)), sinceMs)) return undefined; // the newest come first
          if (linesOf(batch) !== group.lines) continue;
          const id = idOf(batch);
          // Whose it is stands in its results alone.
          if (batch.processing_status !== ENDED) throw new VendorTrouble(`${id} may be the batch whose id was lost`);
          if (await isOurs(backend, group, id, signal)) return id;
        }
        if (told.has_more !== true || typeof told.last_id !== "string") return undefined;
        after = `&after_id=${encodeURIComponent(told.last_id)}`;
      }
    },
    async isOver(backend, { headers }, id, signal) {
      const batch = await calls.json(backend, { method: "GET", path: pathOf(id), headers, signal });
      return batch.processing_status === ENDED;
    },
    results,
    async cancel(backend, { headers }, id, signal) {
      await calls.json(backend, { method: "POST", path: `${pathOf(id)}/cancel`, headers, signal });
    },
    async forget(backend, { headers }, { id }, signal) {
      if (id === undefined) return;
      await calls.json(backend, { method: "DELETE", path: pathOf(id), headers, signal });
    },
  };
}

/** Undefined for a line of something else. */
function resultOf(group: VendorGroup, line: Uint8Array): VendorResult | undefined {
  const told = parseJson(decoder.decode(line));
  const position = isObject(told) ? positionIn(group, told.custom_id) : undefined;
  if (position === undefined || !isObject(told)) return undefined;
  const { result } = told;
  const type = isObject(result) ? result.type : undefined;
  const bytes = memberBytes(line, "result");
  // The bytes of the vendor, in memory of their own.
  const member = (name: string) => bytes && memberBytes(bytes, name)?.slice();
  if (type === "succeeded") {
    const body = member("message");
    return { position, answer: body && { status: 200, body } };
  }
  if (type !== "errored" || !isObject(result)) return { position, answer: undefined };
  const body = member("error");
  const status = STATUSES.get(errorTypeOf(result.error)) ?? 500;
  return { position, answer: body && { status, body } };
}

function errorTypeOf(told: unknown): unknown {
  return isObject(told) && isObject(told.error) ? told.error.type : undefined;
}

/** How many requests it has. */
function linesOf({ request_counts: counts }: JsonObject): number {
  if (!isObject(counts)) return 0;
  return Object.values(counts).reduce<number>((sum, count) => sum + (typeof count === "number" ? count : 0), 0);
}

function idOf({ id }: JsonObject): string {
  if (typeof id === "string") return id;
  throw new VendorTrouble("the answer has no id");
}
