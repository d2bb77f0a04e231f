// Forms with random changes: whatever they have become, a reader finds the same in them at every cut, or the same fault.

import { MultipartFault } from "../../src/lib/multipart-fault.ts";
import { boundaryOf } from "../../src/lib/multipart-head.ts";
import { BOUNDARY, cutAt, formOf, readForm } from "../support/multipart-forms.ts";
import { mutated, type Random } from "./mutations.ts";

const encoder = new TextEncoder();

const SAMPLES = [
  `\r\n--${BOUNDARY}\r\n`,
  `\r\n--${BOUNDARY}--\r\n`,
  `\r\n--${BOUNDARY}-`,
  `\r\n--${BOUNDARY} \t\r`,
  `\r\n--${BOUNDARY}x\r\n`,
  `--${BOUNDARY}`,
  "\r",
  "\r\n",
  "\r\n\r\n",
  "\n",
  "\\",
  '"',
  ";",
  " ".repeat(300),
  "Content-Disposition: form-data; name=a\r\n",
  "; filename*=UTF-8''%e2%82%ac",
  "; filename*=UTF-8''%ff",
  "Content-Type: multipart/mixed\r\n",
  "Content-Transfer-Encoding: base64\r\n",
].map((text) => encoder.encode(text));

const FORMS = [
  [],
  [{ name: "model", content: "some-model" }],
  [
    { name: "model", content: "m" },
    { name: "image", filename: "a%22b.png", contentType: "image/png", content: Uint8Array.of(137, 80, 78, 71, 13, 10) },
    { name: "prompt", content: `two lines\r\n--${BOUNDARY.slice(0, -3)}\r\n` },
    { name: "tag", content: "" },
    { name: "tag", content: "2" },
  ],
].map((parts) => formOf(parts));

/** What became of it. Throws where two cuts say two things, and what the reader throws beside faults. */
export function fuzzMultipart(random: Random): string {
  const below = (limit: number) => Math.floor(random() * limit);
  const form = random() < 0.05 ? 0 : 1 + below(FORMS.length - 1);
  const bytes = mutated(FORMS[form] as Uint8Array, random, SAMPLES);
  const whole = readForm([bytes]);
  const cuts = Array.from({ length: 1 + below(12) }, () => below(bytes.length + 1)).sort((one, other) => one - other);
  const everyByte = Array.from(bytes, (_, index) => index);
  for (const offsets of [cuts, everyByte]) {
    if (!Bun.deepEquals(readForm(cutAt(bytes, offsets)), whole, true)) {
      throw new Error(`not the same at ${offsets}: ${JSON.stringify(Buffer.from(bytes).toString("latin1"))}`);
    }
  }
  const header = `multipart/form-data; boundary="${Buffer.from(bytes.subarray(0, below(90))).toString("latin1")}"`;
  boundaryOf(header.slice(0, below(header.length + 1)));
  return whole instanceof MultipartFault ? `form: ${whole.trouble}` : "form: read";
}
