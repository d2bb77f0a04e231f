// The body of a request that is a form: its text fields and its files, and the bytes they came in. A field that is changed
// is exchanged in those bytes; all others go on as the client wrote them.

import { FormFields } from "./form-fields.ts";
import type { JsonObject } from "./json.ts";
import { MultipartReader } from "./multipart.ts";
import type { PartHead } from "./multipart-head.ts";
import type { RequestBody } from "./request-body.ts";

interface FormFile extends PartHead {
  filename: string;
  /** A view of the form's bytes. */
  bytes: Uint8Array;
}

interface FormPart extends PartHead {
  begin: number;
  contentStart: number;
  contentEnd: number;
}

interface SentForm {
  bytes: Uint8Array;
  boundary: string;
  parts: readonly FormPart[];
  closedAt: number;
  value: JsonObject;
  files: readonly FormFile[];
}

const encoder = new TextEncoder();

export class FormBody implements RequestBody {
  readonly value: JsonObject;
  readonly files: readonly FormFile[];
  readonly #sent: SentForm;
  /** Own members alone, each a text or undefined. */
  readonly #changes: JsonObject;
  readonly #boundary: string;
  #bytes: Uint8Array | undefined;

  private constructor(sent: SentForm, changes: JsonObject) {
    this.#sent = sent;
    this.#changes = changes;
    this.#boundary = boundaryFor(sent, changes);
    const isChanged = Object.keys(changes).length > 0;
    this.value = isChanged ? withoutUndefined({ ...sent.value, ...changes }) : sent.value;
    this.files = isChanged ? sent.files.filter(({ name }) => !Object.hasOwn(changes, name)) : sent.files;
    this.#bytes = isChanged ? undefined : sent.bytes;
  }

  /**
   * Throws MultipartFault, and what `take` throws.
   * @param take - called with the memory of every text before it is made
   */
  static read(bytes: Uint8Array, boundary: string, take: (byteCount: number) => void = () => {}): FormBody {
    const parts: FormPart[] = [];
    const files: FormFile[] = [];
    const fields = new FormFields();
    const reader = new MultipartReader(boundary, {
      part: (head, place) => parts.push({ ...head, ...place, contentEnd: place.contentStart }),
      data() {},
      partEnd(contentEnd) {
        const part = parts.at(-1) as FormPart;
        part.contentEnd = contentEnd;
        const content = bytes.subarray(part.contentStart, contentEnd);
        const { name, filename, contentType } = part;
        if (filename === undefined) {
          take(content.length);
          fields.add(name, content);
        } else {
          files.push({ name, filename, contentType, bytes: content });
        }
      },
    });
    reader.push(bytes);
    reader.end();
    const closedAt = reader.closedAt as number;
    return new FormBody({ bytes, boundary, parts, closedAt, value: fields.toObject(), files }, {});
  }

  get contentType(): string {
    const isToken = /^[\w'+.-]+$/.test(this.#boundary);
    return `multipart/form-data; boundary=${isToken ? this.#boundary : `"${this.#boundary}"`}`;
  }

  bytes(): Uint8Array {
    this.#bytes ??= written(this.#sent, this.#changes, this.#boundary);
    return this.#bytes;
  }

  /**
   * A member that is set is one text field: it takes the place of the first text of its name, and all other parts of that
   * name go. One that is undefined goes with all its parts.
   */
  with(members: JsonObject): FormBody {
    const changes = Object.entries({ ...this.#changes, ...toTexts(members) });
    return new FormBody(
      this.#sent,
      Object.fromEntries(changes.filter(([name, text]) => !isSent(this.#sent, name, text))),
    );
  }

  /** The texts are few, and the files stand in the bytes. */
  letValueGo(): false {
    return false;
  }
}

function toTexts(members: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(members).map(([name, value]) => {
      if (typeof value === "object" || typeof value === "function") {
        throw new TypeError(`${name}: a field of a form is a text`);
      }
      return [name, value === undefined ? undefined : String(value)];
    }),
  );
}

function isSent({ value, files }: SentForm, name: string, text: unknown): boolean {
  const known = Object.hasOwn(value, name) ? value[name] : undefined;
  return known === text && !files.some((file) => file.name === name);
}

function withoutUndefined(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

/** The client's own, unless a new text contains it: that would end its part. */
function boundaryFor({ boundary, bytes }: SentForm, changes: JsonObject): string {
  const texts = Object.values(changes).filter((text) => typeof text === "string");
  if (!texts.some((text) => text.includes(boundary))) return boundary;
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let count = 0; ; count++) {
    const other = `signalbox-form-${count}`;
    if (!texts.some((text) => text.includes(other)) && !whole.includes(other)) return other;
  }
}

function written(sent: SentForm, changes: JsonObject, boundary: string): Uint8Array {
  const { bytes, parts, closedAt } = sent;
  const left = new Map(Object.entries(changes));
  const pieces: Uint8Array[] = [];
  const behindBoundary = (begin: number) => begin + "--".length + sent.boundary.length;
  const line = encoder.encode(`--${boundary}`);
  pieces.push(bytes.subarray(0, parts[0]?.begin ?? closedAt));
  for (const [index, part] of parts.entries()) {
    const { name, begin, contentStart, contentEnd } = part;
    const end = parts[index + 1]?.begin ?? closedAt;
    if (!Object.hasOwn(changes, name)) {
      pieces.push(line, bytes.subarray(behindBoundary(begin), end));
      continue;
    }
    const text = left.get(name);
    if (part.filename !== undefined || typeof text !== "string") continue;
    left.delete(name);
    const head = bytes.subarray(behindBoundary(begin), contentStart);
    // A length would be that of the former text.
    const isKept = !/^content-length[ \t]*:/im.test(Buffer.from(head).toString("latin1"));
    pieces.push(line, isKept ? head : headOf(name), encoder.encode(text), bytes.subarray(contentEnd, end));
  }
  for (const [name, text] of left) {
    if (typeof text === "string") pieces.push(line, headOf(name), encoder.encode(`${text}\r\n`));
  }
  pieces.push(line, bytes.subarray(behindBoundary(closedAt)));
  return Buffer.concat(pieces);
}

/** The header lines of a text part, escaped as readers of forms expect it. */
function headOf(name: string): Uint8Array {
  const escaped = name.replaceAll("\\", "\\\\").replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
  return encoder.encode(`\r\nContent-Disposition: form-data; name="${escaped}"\r\n\r\n`);
}
