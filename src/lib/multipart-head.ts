// The headers around forms: the boundary that a Content-Type names, and what the head of a part says of it.

import { MultipartFault } from "./multipart-fault.ts";

export interface PartHead {
  name: string;
  /** As the client gave it, whatever it contains; undefined: the part is a text field. */
  filename: string | undefined;
  contentType: string | undefined;
}

const BOUNDARY = /^[\w'()+,./:=? -]{0,69}[\w'()+,./:=?-]$/;
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const PARAMETER = new RegExp(
  `[ \\t]*;[ \\t]*(?:(${TOKEN})[ \\t]*=[ \\t]*(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;"]+)))?`,
  "y",
);
const HEADER_LINE = new RegExp(`^(${TOKEN}):(.*)$`);
/** Characters that may not stand in a header; among them are the line ends of lines. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROL = /[\0-\x08\x0a-\x1f\x7f]/;
const ONE_BYTE_ENCODINGS: readonly string[] = ["7bit", "8bit", "binary"];

const strictDecoder = new TextDecoder("utf-8", { fatal: true });

/** Returns a fault instead of throwing it: a caller may not need a form at all. */
export function boundaryOf(contentType: string | null): string | MultipartFault {
  const [type = ""] = contentType?.split(";", 1) ?? [];
  if (type.trim().toLowerCase() !== "multipart/form-data") {
    return new MultipartFault(
      "notAForm",
      "The request must be a form: Content-Type 'multipart/form-data; boundary=...'.",
    );
  }
  const boundary = parametersOf((contentType as string).slice(type.length))?.get("boundary");
  if (boundary !== undefined && BOUNDARY.test(boundary)) return boundary;
  return new MultipartFault(
    "noBoundary",
    "The Content-Type multipart/form-data has no valid boundary (1 to 70 characters); let the HTTP client set this header.",
  );
}

/** The lines of a head, without the empty one that ends it. Throws MultipartFault. */
export function readPartHead(bytes: Uint8Array): PartHead {
  const headers = headersOf(bytes);
  const disposition = headers.get("content-disposition");
  if (disposition === undefined) throw nameless();
  const [type = ""] = disposition.split(";", 1);
  const parameters = parametersOf(disposition.slice(type.length));
  if (type.trim().toLowerCase() !== "form-data" || parameters === undefined || parameters.has("name*")) {
    throw broken("Content-Disposition");
  }
  const name = unescaped(parameters.get("name") ?? "");
  if (name === "") throw nameless();
  const contentType = headers.get("content-type");
  if (contentType?.toLowerCase().startsWith("multipart/")) {
    throw new MultipartFault("nested", `${shown(name)}: forms within forms are not supported.`, name);
  }
  const encoding = headers.get("content-transfer-encoding")?.toLowerCase() ?? "binary";
  if (!ONE_BYTE_ENCODINGS.includes(encoding)) {
    const reason = "Content-Transfer-Encoding is not supported; send the bytes as they are";
    throw new MultipartFault("encoded", `${shown(name)}: ${reason}.`, name);
  }
  return { name, filename: filenameOf(parameters, name), contentType };
}

function headersOf(bytes: Uint8Array): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  if (bytes.length === 0) return headers;
  let text: string;
  try {
    text = strictDecoder.decode(bytes);
  } catch {
    throw new MultipartFault("headBroken", "The headers of a part of the form are not valid UTF-8.");
  }
  for (const line of text.split("\r\n")) {
    const [, name = "", value = ""] = HEADER_LINE.exec(line) ?? [];
    const key = name.toLowerCase();
    if (key === "" || CONTROL.test(value)) {
      throw new MultipartFault("headBroken", "A part of the form has a line among its headers that is none.");
    }
    // A reader that takes the first of two and one that takes the last would see different forms.
    if (headers.has(key)) throw broken(shown(name));
    headers.set(key, value.trim());
  }
  return headers;
}

/** Browsers may send "filename" alone; who sends "filename*" too means what that says. */
function filenameOf(parameters: ReadonlyMap<string, string>, name: string): string | undefined {
  const extended = parameters.get("filename*");
  if (extended === undefined) {
    const filename = parameters.get("filename");
    return filename === undefined ? undefined : unescaped(filename);
  }
  const encoded = /^utf-8'[^']*'(.*)$/is.exec(extended)?.[1];
  try {
    if (encoded !== undefined) return decodeURIComponent(encoded);
  } catch {
    // It is reported below.
  }
  throw new MultipartFault("headBroken", `${shown(name)}: filename* is not UTF-8 with percent signs.`, name);
}

/** Names in small letters; undefined when that is no list of parameters, or one of them stands there twice. */
function parametersOf(text: string): ReadonlyMap<string, string> | undefined {
  const parameters = new Map<string, string>();
  const pattern = new RegExp(PARAMETER);
  while (pattern.lastIndex < text.length) {
    const start = pattern.lastIndex;
    const found = pattern.exec(text);
    if (found === null) return text.slice(start).trim() === "" ? parameters : undefined;
    const [, name, quoted, plain] = found;
    if (name === undefined) continue; // a semicolon too many
    const key = name.toLowerCase();
    if (parameters.has(key)) return undefined;
    parameters.set(key, quoted ?? (plain as string));
  }
  return parameters;
}

/** Browsers write three characters with percent signs and leave backslashes alone; curl writes quotes with backslashes. */
function unescaped(text: string): string {
  return text.replace(/\\(["\\])|%(22|0D|0A)/gi, (_all, escaped?: string, code?: string) =>
    code === undefined ? (escaped as string) : String.fromCharCode(Number.parseInt(code, 16)),
  );
}

/** A name in a message: as much of it as one can read, on one line. */
function shown(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced
  return name.slice(0, 64).replace(/[\0-\x1f\x7f]/g, "?");
}

function nameless(): MultipartFault {
  return new MultipartFault("noName", "The form has a part without a name (Content-Disposition: form-data; name=...).");
}

function broken(header: string): MultipartFault {
  return new MultipartFault("headBroken", `A part of the form has a ${header} header that cannot be read.`);
}
