// Gemini's batches: the requests stand in the body that creates one, and the batch is a long-running operation, which has its
// results in it. Shapes: batches of the package @google/genai; Google, "Batch API"; google/rpc/status.proto.

import type { Backend } from "../backends/backend.ts";
import { readSpooled } from "../batches/vendor/group-files.ts";
import { type VendorGroup, VendorRefusal, type VendorResult, VendorTrouble } from "../batches/vendor/vendor-api.ts";
import { isObject, parseJson } from "../lib/json.ts";
import { memberBytes } from "../lib/json-members.ts";
import type { JsonPick } from "../lib/json-picks.ts";
import type { VendorCalls } from "./vendor-call.ts";
import { isPast, joinLines, lineId, positionIn, type VendorWire } from "./wire.ts";

const VERSION = "/v1beta";
const NAME = /^batches\/[\w-]{1,128}$/;
/** Few: each has its results with it. */
const PAGE = 20;

/** Of a page of batches, and where the next one begins. */
const LISTED = [
  ...["operations.*.name", "operations.*.metadata.displayName", "operations.*.metadata.createTime"],
  "nextPageToken",
];

/** States are spelt BATCH_STATE_… and JOB_STATE_…. */
const ENDED = /_(?:SUCCEEDED|CANCELLED|EXPIRED)$/;
const FAILED = /_FAILED$/;

/** The results stand in both places; they are in no order (googleapis/python-genai, issue 1909). */
const RESULTS = ["metadata.output.inlinedResponses.inlinedResponses.*", "response.inlinedResponses.inlinedResponses.*"];

/** The codes of google.rpc that are answers to a line, as HTTP has them; by any other the line was not asked. */
const REFUSALS: ReadonlyMap<unknown, { code: number; status: string }> = new Map([
  [3, { code: 400, status: "INVALID_ARGUMENT" }],
  [5, { code: 404, status: "NOT_FOUND" }],
  [9, { code: 400, status: "FAILED_PRECONDITION" }],
  [11, { code: 400, status: "OUT_OF_RANGE" }],
]);

const decoder = new TextDecoder();

export function createOperationsWire(calls: VendorCalls): VendorWire {
  const look = (
    backend: Backend,
    { headers }: VendorGroup,
    path: string,
    wanted: readonly string[],
    signal: AbortSignal,
  ) => calls.picks(backend, { method: "GET", path: `${VERSION}/${path}`, headers, signal }, wanted);

  return {
    // Creating uploads.
    upload: async () => "",
    async create(backend, group, _, lines, signal) {
      const { path, headers, name } = group;
      const requests = joinLines(await lines(), (line) => {
        const { position, body } = readSpooled(line);
        return [`,{"metadata":{"key":${JSON.stringify(lineId(group, position))}},"request":`, body, "}"];
      });
      const head = `{"batch":{"displayName":${JSON.stringify(name)},"inputConfig":{"requests":{"requests":[`;
      const body = Buffer.concat([Buffer.from(head), requests.subarray(1), Buffer.from("]}}}}")]);
      return nameIn(await calls.json(backend, { method: "POST", path, headers, body, signal }));
    },
    async find(backend, group, sinceMs, signal) {
      for (let token = ""; ; ) {
        const path = `batches?pageSize=${PAGE}${token}`;
        token = "";
        let [firstMs, lastMs] = [Number.NaN, Number.NaN];
        let operation: { place?: unknown; name?: unknown; displayName?: unknown } = {};
        for await (const { path: at, bytes } of look(backend, group, path, LISTED, signal)) {
          const told = parsed(bytes);
          const member = at.at(-1);
          if (member === "nextPageToken") token = `&pageToken=${encodeURIComponent(String(told))}`;
          else if (member === "createTime") {
            lastMs = Date.parse(String(told));
            if (Number.isNaN(firstMs)) firstMs = lastMs;
          } else {
            if (operation.place !== at[1]) operation = { place: at[1] };
            operation[member as "name" | "displayName"] = told;
            if (operation.displayName === group.name && operation.name !== undefined) return nameIn(operation);
          }
        }
        if (token === "" || isPast(firstMs, lastMs, sinceMs)) return undefined;
      }
    },
    async isOver(backend, group, id, signal) {
      let hasFailed = false;
      let isDone = false;
      let code = "";
      // Results may stand behind the state: they are not waited for here.
      for await (const { path, bytes } of look(backend, group, id, ["metadata.state", "done", "error.code"], signal)) {
        const told = String(parsed(bytes));
        if (path[0] === "error") code = ` (google.rpc code ${told})`;
        else if (path[0] === "done") isDone = told === "true";
        else if (ENDED.test(told)) return true;
        else hasFailed = FAILED.test(told);
      }
      if (hasFailed) throw new VendorRefusal(`${id} has failed${code}`);
      return isDone;
    },
    async *results(backend, group, id, signal) {
      let place: JsonPick["path"][number] | undefined;
      for await (const { path, bytes } of look(backend, group, id, RESULTS, signal)) {
        place ??= path[0];
        if (path[0] !== place) return; // the same again
        const result = resultOf(group, bytes);
        if (result !== undefined) yield result;
      }
    },
    async cancel(backend, { headers }, id, signal) {
      await calls.json(backend, { method: "POST", path: `${VERSION}/${id}:cancel`, headers, body: "{}", signal });
    },
    async forget(backend, { headers }, { id }, signal) {
      if (id === undefined) return;
      await calls.json(backend, { method: "DELETE", path: `${VERSION}/${id}`, headers, signal });
    },
  };
}

/** Undefined for a line of something else. */
function resultOf(group: VendorGroup, bytes: Uint8Array): VendorResult | undefined {
  const told = parsed(bytes);
  const position = isObject(told) && isObject(told.metadata) ? positionIn(group, told.metadata.key) : undefined;
  if (position === undefined || !isObject(told)) return undefined;
  const { response, error } = told;
  if (isObject(response)) {
    const body = memberBytes(bytes, "response");
    return { position, answer: body && { status: 200, body } };
  }
  const refusal = isObject(error) ? REFUSALS.get(error.code) : undefined;
  if (refusal === undefined || !isObject(error)) return { position, answer: undefined };
  // As a single request gets it.
  const body = Buffer.from(JSON.stringify({ error: { ...error, ...refusal } }));
  return { position, answer: { status: refusal.code, body } };
}

function parsed(bytes: Uint8Array): unknown {
  return parseJson(decoder.decode(bytes));
}

/** It becomes a path. */
function nameIn({ name }: { name?: unknown }): string {
  if (typeof name === "string" && NAME.test(name)) return name;
  throw new VendorTrouble("the answer has no name of a batch");
}
