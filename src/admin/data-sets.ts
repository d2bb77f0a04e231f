// /admin/recordings/export and /admin/datasets: recordings as lines of JSON in OpenAI's shapes, and such lines as recordings.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import {
  anything,
  component,
  count,
  described,
  list,
  oneOfTexts,
  schemasOf,
  shape,
  text,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, queryParameter } from "../openapi/operation.ts";
import { readAnswer, readAsked } from "../recording/conversation.ts";
import { DATA_SET_SHAPES, type DataSetShape, toLine } from "../recording/data-set.ts";
import type { RecordingFilter } from "../recording/filter.ts";
import type { Recordings } from "../recording/recordings.ts";
import type { StoredRecording } from "../recording/store.ts";
import { adminGroup, answer } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { badParameter, queryOf, readNumber } from "./query.ts";
import { filterParameters, readFilter } from "./recording-query.ts";
import { inStore, openedRecordings } from "./recording-storage.ts";

const JSON_LINES = "application/jsonl";
const MOST_BYTES = 64 * 1024 ** 2;
const MOST_LINES = 10_000;
const MOST_EXPORTED = 100_000;
const PAGE = 50;
const MOST_REFUSALS = 100;
const NAME_PATTERN = "^[A-Za-z0-9._-]{1,64}$";
const NAME = new RegExp(NAME_PATTERN);

const DataSet = component("DataSet", shape({ name: text, recordings: count }));

const DataSetList = component("DataSetList", shape({ datasets: list(DataSet) }));

const DataSetImport = component(
  "DataSetImport",
  shape({
    name: text,
    imported: count,
    refused: described(count, "Lines that could not be read."),
    problems: described(list(shape({ line: count, message: text })), "The first hundred of them."),
  }),
);

const endpoint = adminGroup("Recordings", schemasOf(DataSet, DataSetList, DataSetImport));

type DataSetParts = Pick<AdminParts, "recordings" | "clock">;

export function dataSetRoutes({ recordings, clock }: DataSetParts): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/recordings/export", {
      id: "exportRecordings",
      role: "operator",
      summary: "Recorded conversations as lines of JSON in OpenAI's shapes",
      description: "Those that succeeded and were kept as a whole, the newest first.",
      parameters: [
        queryParameter("shape", "Of a line.", { ...oneOfTexts(...DATA_SET_SHAPES), default: "finetuning" }),
        queryParameter("limit", "Most lines.", {
          type: "integer",
          minimum: 1,
          default: MOST_EXPORTED,
        }),
        ...filterParameters,
      ],
      answers: [{ status: 200, description: "The lines.", types: [JSON_LINES] }],
      errors: [503],
      async handle(call) {
        const query = queryOf(call);
        const lineShape = readShape(query.get("shape"));
        const filter = readFilter(query, clock.wallTime());
        const limit = Math.min(readNumber(query, "limit", 1) ?? MOST_EXPORTED, MOST_EXPORTED);
        const store = await openedRecordings(recordings);
        const body = store === undefined ? "" : streamOf(linesOf(store, filter, lineShape, limit));
        const headers = { ...call.headers, "Content-Type": JSON_LINES, "Cache-Control": "no-store" };
        return new Response(body, { headers });
      },
    }),
    endpoint("GET /admin/datasets", {
      id: "listDataSets",
      role: "operator",
      summary: "Imported data sets",
      answers: [jsonAnswer(DataSetList, "The data sets.")],
      errors: [503],
      async handle(call) {
        const store = await openedRecordings(recordings);
        const found = store === undefined ? [] : inStore(() => store.dataSets());
        return answer(call, { datasets: found.map(({ name, count: recorded }) => ({ name, recordings: recorded })) });
      },
    }),
    endpoint("POST /admin/datasets", {
      id: "importDataSet",
      role: "operator",
      summary: "Import lines of OpenAI's fine-tuning or evals files as recordings",
      description: "They are found and replayed as recordings are, by the filter dataset.",
      parameters: [
        {
          ...queryParameter("name", "Of the data set; lines are added to one that is there.", {
            ...text,
            pattern: NAME_PATTERN,
          }),
          required: true,
        },
      ],
      body: { schema: anything, isChecked: false, types: [JSON_LINES, "application/json"], maxBytes: MOST_BYTES },
      answers: [jsonAnswer(DataSetImport, "What was imported.", 201)],
      errors: [503],
      async handle(call) {
        const name = queryOf(call).get("name") ?? "";
        if (!NAME.test(name)) throw badParameter("name", "1 to 64 letters, digits and the signs . _ -");
        const lines = new TextDecoder().decode(await call.readBody(MOST_BYTES)).split(/\r?\n/);
        if (lines.length > MOST_LINES + 1) throw tooManyLines();
        const store = (await openedRecordings(recordings, true)) as Recordings;
        const problems: { line: number; message: string }[] = [];
        let imported = 0;
        let refused = 0;
        for (const [index, line] of lines.entries()) {
          if (line.trim() === "") continue;
          const message = await inStore(() => store.take(name, line));
          if (message === undefined) imported++;
          else if (++refused <= MOST_REFUSALS) problems.push({ line: index + 1, message });
        }
        call.deed = { subject: name, changes: [{ section: "datasets", field: "recordings", from: 0, to: imported }] };
        return answer(call, { name, imported, refused, problems }, { status: 201 });
      },
    }),
  ];
}

function tooManyLines(): GatewayError {
  return new GatewayError(ERRORS.invalidRequest, `A data set takes at most ${MOST_LINES} lines in one request.`);
}

function readShape(name: string | null): DataSetShape {
  const found = DATA_SET_SHAPES.find((each) => each === (name ?? DATA_SET_SHAPES[0]));
  if (found === undefined) throw badParameter("shape", `one of ${DATA_SET_SHAPES.join(", ")}`);
  return found;
}

async function* linesOf(store: Recordings, filter: RecordingFilter, lineShape: DataSetShape, limit: number) {
  let behind: StoredRecording | undefined;
  let left = limit;
  for (;;) {
    const page = await store.list(filter, { limit: PAGE, behind });
    for (const recording of page) {
      const line = await lineFor(store, recording, lineShape);
      if (line === undefined) continue;
      yield `${line}\n`;
      if (--left === 0) return;
    }
    if (page.length < PAGE) return;
    behind = page.at(-1);
  }
}

async function lineFor(
  store: Recordings,
  recording: StoredRecording,
  lineShape: DataSetShape,
): Promise<string | undefined> {
  const { id, model, answeredBy, operation, status } = recording;
  if (status !== 200) return undefined;
  const bodies = await store.read(recording);
  if (bodies === undefined) return undefined;
  const request = readAsked(operation, bodies.request);
  const told = readAnswer(operation, bodies.answer, status);
  if (request === undefined || told?.finish === undefined) return undefined;
  return toLine(lineShape, { id, model: answeredBy ?? model, request, answer: told });
}

/** A line is made when the client has taken the one before. */
function streamOf(lines: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await lines.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    async cancel() {
      await lines.return(undefined);
    },
  });
}
