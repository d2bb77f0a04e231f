// Requests for speech, transcriptions and translations of speech: which are refused, and what routing needs to know of the
// others (OpenAI's Audio API; engines know more fields, which pass).

import { isPresent, type JsonObject } from "../../lib/json.ts";
import { checkString, invalidField, missingField, requireModel, wrongType, wrongWord } from "../fields.ts";
import { affinityOf, type RequestSummary } from "../request-summary.ts";

/** What of a form with a recording is looked at. */
interface AudioForm {
  /** Fields that are texts. */
  readonly value: JsonObject;
  readonly files: readonly { name: string; bytes: Uint8Array }[];
}

/** Formats of transcriptions that are no JSON. */
const TEXT_FORMATS: ReadonlySet<unknown> = new Set(["text", "srt", "vtt"]);

/** One of these with a file name would be read by this gateway and by its backends in different ways. */
const TEXT_FIELDS: ReadonlySet<string> = new Set(
  ["model", "language", "prompt", "response_format", "temperature", "stream"], //
);

/** Speech comes as the bytes of a file while it is made, or in events where they are asked for. */
export function readSpeechRequest(body: JsonObject): RequestSummary {
  const model = requireModel(body);
  const { input, stream_format } = body;
  if (!isPresent(input)) throw missingField("input", "the text that is to be spoken.");
  if (typeof input !== "string") throw wrongType("input", "a string", input);
  if (input === "") throw invalidField("input", "must not be empty.");
  checkString(body, "instructions");
  checkString(body, "response_format");
  checkString(body, "stream_format");
  const answers = stream_format === "sse" ? undefined : "bytes";
  return { model, stream: true, choices: 1, answers, affinity: affinityOf };
}

/** A recording, transcribed or translated. Engines such as vLLM stream translations too. */
export function readRecordingRequest({ value, files }: AudioForm): RequestSummary {
  const asFile = files.find(({ name }) => TEXT_FIELDS.has(name));
  if (asFile !== undefined) throw invalidField(asFile.name, "expected a text, got a file.");
  const model = requireModel(value);
  const recordings = files.filter(({ name }) => name === "file");
  if (recordings.length === 0 && isPresent(value.file)) throw invalidField("file", "expected a file, got a text.");
  if (recordings.length === 0) throw missingField("file", "the recording, as a file of the form.");
  if (recordings.length > 1) throw invalidField("file", "expected one file.");
  if (recordings[0]?.bytes.length === 0) throw invalidField("file", "is empty.");
  for (const field of ["response_format", "language", "prompt", "stream"]) checkString(value, field);
  const { stream = "false" } = value;
  // Backends read other words in their own ways, and would stream to who waits for a whole answer.
  if (stream !== "true" && stream !== "false") throw wrongWord("stream", ["true", "false"], stream);
  const answers = TEXT_FORMATS.has(value.response_format) ? "text" : undefined;
  return { model, stream: stream === "true", choices: 1, answers, affinity: affinityOf };
}
