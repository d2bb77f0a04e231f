// OpenAI's batches, and Azure's: a file of requests is uploaded, a batch of it created, and its results are files again. Shapes:
// resources/batches and resources/files of the package openai; Microsoft, "Getting started with Azure OpenAI batch deployments".

import type { Backend } from "../backends/backend.ts";
import { readSpooled } from "../batches/vendor/group-files.ts";
import { type VendorGroup, VendorRefusal, type VendorResult, VendorTrouble } from "../batches/vendor/vendor-api.ts";
import { abortableDelay } from "../lib/abortable-delay.ts";
import { isObject, type JsonObject, parseJson } from "../lib/json.ts";
import { memberBytes } from "../lib/json-members.ts";
import type { VendorCalls } from "./vendor-call.ts";
import { isPast, joinLines, lineId, positionIn, type VendorWire } from "./wire.ts";

const FILES = "/v1/files";
const BATCHES = "/v1/batches";
/** The key of the metadata that names the group. */
const NAME_KEY = "signalbox_batch";
const ENDED: readonly string[] = ["completed", "expired", "cancelled"];
/** It could not be begun: none of its lines was asked. */
const FAILED = "failed";
/** Of a file that Azure still reads; a batch of it can be created when it has another one. */
const UNREAD: readonly unknown[] = ["pending", "running"];
const UNREAD_PAUSE_MS = 500;
const MOST_LOOKS = 60;
const PAGE = 100;

const decoder = new TextDecoder();

export function createFilesWire(calls: VendorCalls): VendorWire {
  const batchOf = (backend: Backend, { headers }: VendorGroup, id: string, signal: AbortSignal) =>
    calls.json(backend, { method: "GET", path: at(backend, BATCHES, id), headers, signal });

  /** Resolves when a batch can be created of the file. */
  async function untilRead(backend: Backend, { headers }: VendorGroup, file: JsonObject, signal: AbortSignal) {
    let { status } = file;
    for (let looks = 0; UNREAD.includes(status); looks++) {
      if (looks === MOST_LOOKS) throw new VendorTrouble("the vendor has not read the uploaded file");
      await abortableDelay(UNREAD_PAUSE_MS, signal);
      ({ status } = await calls.json(backend, {
        method: "GET",
        path: at(backend, FILES, idOf(file)),
        headers,
        signal,
      }));
    }
  }

  async function* resultsIn(backend: Backend, group: VendorGroup, fileId: unknown, signal: AbortSignal) {
    if (typeof fileId !== "string") return;
    const { headers } = group;
    const path = `${at(backend, FILES, fileId)}/content`;
    for await (const line of calls.lines(backend, { method: "GET", path, headers, signal })) {
      const result = resultOf(group, line);
      if (result !== undefined) yield result;
    }
  }

  return {
    async upload(backend, group, lines, signal) {
      const { name, path: url, headers } = group;
      const boundary = `signalbox-${name}`;
      const file = joinLines(await lines(), (line) => {
        const { position, body } = readSpooled(line);
        const head = { custom_id: lineId(group, position), method: "POST", url };
        return [JSON.stringify(head).slice(0, -1), ',"body":', body, "}\n"];
      });
      const part = (disposition: string) => `--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\n`;
      const body = Buffer.concat([
        Buffer.from(`${part('name="purpose"')}\r\nbatch\r\n`),
        Buffer.from(`${part(`name="file"; filename="${name}.jsonl"`)}Content-Type: application/octet-stream\r\n\r\n`),
        file,
        Buffer.from(`\r\n--${boundary}--\r\n`),
      ]);
      const told = await calls.json(backend, {
        ...{ method: "POST", path: at(backend, FILES), body, signal },
        headers: { ...headers, "content-type": `multipart/form-data; boundary=${boundary}` },
      });
      await untilRead(backend, group, told, signal);
      return idOf(told);
    },
    async create(backend, { name, path, headers }, uploaded, _, signal) {
      const asked = {
        input_file_id: uploaded,
        endpoint: backend.kind.batchApi?.endpoint ?? path,
        completion_window: "24h",
        metadata: { [NAME_KEY]: name },
      };
      const body = JSON.stringify(asked);
      return idOf(await calls.json(backend, { method: "POST", path: at(backend, BATCHES), headers, body, signal }));
    },
    async find(backend, { name, headers }, sinceMs, signal) {
      let after = "";
      for (;;) {
        const path = `${at(backend, BATCHES)}?limit=${PAGE}${after}`;
        const { data, has_more: hasMore } = await calls.json(backend, { method: "GET", path, headers, signal });
        const page = (Array.isArray(data) ? data : []).filter(isObject);
        const found = page.find(({ metadata }) => isObject(metadata) && metadata[NAME_KEY] === name);
        if (found !== undefined) return idOf(found);
        const last = page.at(-1);
        if (last === undefined || hasMore !== true) return undefined;
        const [first] = page;
        if (isPast(Number(first?.created_at) * 1000, Number(last.created_at) * 1000, sinceMs)) return undefined;
        after = `&after=${encodeURIComponent(idOf(last))}`;
      }
    },
    async isOver(backend, group, id, signal) {
      const { status: told, errors } = await batchOf(backend, group, id, signal);
      const status = String(told).toLowerCase(); // Azure's begin with a capital letter at times
      if (status === FAILED) throw new VendorRefusal(`${id} has failed${faultOf(errors)}`);
      return ENDED.includes(status);
    },
    async *results(backend, group, id, signal) {
      const { output_file_id: output, error_file_id: errors } = await batchOf(backend, group, id, signal);
      yield* resultsIn(backend, group, output, signal);
      yield* resultsIn(backend, group, errors, signal);
    },
    async cancel(backend, { headers }, id, signal) {
      await calls.json(backend, {
        method: "POST",
        path: `${at(backend, BATCHES, id)}/cancel`,
        headers,
        signal,
      });
    },
    async forget(backend, group, { uploaded, id }, signal) {
      const batch = id === undefined ? { input_file_id: uploaded } : await batchOf(backend, group, id, signal);
      for (const fileId of [batch.input_file_id, batch.output_file_id, batch.error_file_id]) {
        if (typeof fileId !== "string") continue;
        const path = at(backend, FILES, fileId);
        await calls.json(backend, { method: "DELETE", path, headers: group.headers, signal });
      }
    },
  };
}

/** The path of a collection, or of one of its things. */
function at({ kind }: Backend, collection: string, id?: string): string {
  const path = `${kind.batchApi?.mount ?? ""}${collection}`;
  return id === undefined ? path : `${path}/${encodeURIComponent(id)}`;
}

/** Undefined for a line of something else. */
function resultOf(group: VendorGroup, line: Uint8Array): VendorResult | undefined {
  const told = parseJson(decoder.decode(line));
  const position = isObject(told) ? positionIn(group, told.custom_id) : undefined;
  if (position === undefined || !isObject(told)) return undefined;
  const { response } = told;
  const status = isObject(response) ? response.status_code : undefined;
  // The bytes of the vendor, in memory of their own.
  const answer = typeof status === "number" ? memberBytes(line, "response") : undefined;
  const body = answer && memberBytes(answer, "body")?.slice();
  return { position, answer: typeof status === "number" && body !== undefined ? { status, body } : undefined };
}

/** The code alone: messages may quote the lines. */
function faultOf(errors: unknown): string {
  const [first] = isObject(errors) && Array.isArray(errors.data) ? errors.data : [];
  return isObject(first) && typeof first.code === "string" ? ` (${first.code.slice(0, 64)})` : "";
}

function idOf({ id }: JsonObject): string {
  if (typeof id === "string") return id;
  throw new VendorTrouble("the answer has no id");
}
