// Validation of the field input: a text, or items with their content parts and files.

import { isObject, type JsonObject } from "../../lib/json.ts";
import { describe, invalidField, missingField } from "../fields.ts";
import { CONVERSATION_ROLES, FILE_MEDIA_TYPES, imageUrlOf, isGiven, isItemReference, parseDataUrl } from "./wire.ts";

/** Most files of a request that are named instead of given (specification, Limits). */
const MAX_FILE_REFERENCES = 20;

export function checkInput(input: unknown): void {
  if (input === undefined || input === null) throw missingField("input", "a string or an array of items.");
  if (typeof input === "string") return;
  if (!Array.isArray(input)) throw invalidField("input", `expected a string or an array, got ${describe(input)}.`);
  if (countFileReferences(input) > MAX_FILE_REFERENCES) {
    throw invalidField("input", `a request may refer to at most ${MAX_FILE_REFERENCES} files.`);
  }
  for (let index = 0; index < input.length; index++) checkItem(input[index], `input[${index}]`);
}

function countFileReferences(items: readonly unknown[]): number {
  let count = 0;
  for (const item of items) {
    if (!isObject(item)) continue;
    const parts =
      item.type === "function_call_output" || item.type === "custom_tool_call_output" ? item.output : item.content;
    if (!Array.isArray(parts)) continue;
    for (const part of parts) {
      if (isObject(part) && (isGiven(part.file_id) || isGiven(part.file_url))) count++;
    }
  }
  return count;
}

function checkItem(item: unknown, path: string): void {
  if (!isObject(item)) throw invalidField(path, `expected an object, got ${describe(item)}.`);
  const { type } = item;
  if (type !== "item_reference" && isItemReference(item)) return;
  if (type === undefined || type === null) {
    if (item.role === undefined) throw missingField(`${path}.type`, "such as message or function_call_output.");
    checkMessage(item, path);
    return;
  }
  if (typeof type !== "string") throw invalidField(`${path}.type`, `expected a string, got ${describe(type)}.`);
  if (type === "message") checkMessage(item, path);
  for (const field of REQUIRED_STRINGS[type] ?? []) {
    if (typeof item[field] === "string") continue;
    if (!isGiven(item[field])) throw missingField(`${path}.${field}`, "a string.");
    throw invalidField(`${path}.${field}`, `expected a string, got ${describe(item[field])}.`);
  }
  if (type === "function_call_output" || type === "custom_tool_call_output")
    checkContent(item.output, `${path}.output`);
}

const REQUIRED_STRINGS: Readonly<Record<string, readonly string[] | undefined>> = {
  function_call: ["call_id", "name", "arguments"],
  custom_tool_call: ["call_id", "name", "input"],
  function_call_output: ["call_id"],
  custom_tool_call_output: ["call_id"],
  item_reference: ["id"],
};

function checkMessage({ role, content }: JsonObject, path: string): void {
  if (role === undefined) throw missingField(`${path}.role`, `one of ${CONVERSATION_ROLES.join(", ")}.`);
  if (!CONVERSATION_ROLES.includes(role)) {
    const given = typeof role === "string" ? JSON.stringify(role) : describe(role);
    throw invalidField(`${path}.role`, `expected one of ${CONVERSATION_ROLES.join(", ")}, got ${given}.`);
  }
  checkContent(content, `${path}.content`);
}

function checkContent(content: unknown, path: string): void {
  if (!isGiven(content)) throw missingField(path, "a string or an array of content parts.");
  if (typeof content === "string") return;
  if (!Array.isArray(content)) {
    throw invalidField(path, `expected a string or an array of content parts, got ${describe(content)}.`);
  }
  for (let index = 0; index < content.length; index++) checkPart(content[index], `${path}[${index}]`);
}

function checkPart(part: unknown, path: string): void {
  if (!isObject(part)) throw invalidField(path, `expected an object, got ${describe(part)}.`);
  switch (part.type) {
    case "text":
    case "input_text":
    case "output_text":
      if (typeof part.text === "string") return;
      throw invalidField(`${path}.text`, `expected a string, got ${describe(part.text)}.`);
    case "input_image":
    case "image_url":
      checkImage(part, path);
      return;
    case "input_file":
      checkFile(part, path);
      return;
    default:
      if (typeof part.type !== "string")
        throw invalidField(`${path}.type`, 'expected a part type such as "input_text".');
  }
}

function checkImage(part: JsonObject, path: string): void {
  if (namesFile(part, path)) return;
  const url = imageUrlOf(part);
  if (url === undefined) throw missingField(`${path}.image_url`, "a URL or a base64 data URL.");
  checkUrl(url, `${path}.image_url`, (mediaType) => mediaType.startsWith("image/"));
}

function checkFile(part: JsonObject, path: string): void {
  if (namesFile(part, path)) return;
  const { file_data: data, file_url: url } = part;
  if (isGiven(data)) {
    if (typeof data !== "string") throw invalidField(`${path}.file_data`, `expected a string, got ${describe(data)}.`);
    if (parseDataUrl(data) === undefined) {
      throw invalidField(`${path}.file_data`, 'expected a base64 data URL such as "data:application/pdf;base64,...".');
    }
    checkUrl(data, `${path}.file_data`);
  } else if (isGiven(url)) {
    if (typeof url !== "string") throw invalidField(`${path}.file_url`, `expected a string, got ${describe(url)}.`);
    checkUrl(url, `${path}.file_url`);
  } else {
    throw missingField(`${path}.file_data`, "a file needs file_data or file_url.");
  }
}

/** A file that a backend of this format may hold. What has to be translated is refused where it is (input-parts.ts). */
function namesFile({ file_id: id }: JsonObject, path: string): boolean {
  if (!isGiven(id)) return false;
  if (typeof id !== "string") throw invalidField(`${path}.file_id`, `expected a string, got ${describe(id)}.`);
  return true;
}

/** A data URL of a known type or the address of a file; whether the address may be fetched is settled elsewhere. */
function checkUrl(url: string, path: string, isWanted?: (mediaType: string) => boolean): void {
  const given = parseDataUrl(url);
  if (given === undefined) {
    if (/^https?:\/\/[^/]/i.test(url)) return;
    throw invalidField(path, "expected an http or https URL or a base64 data URL.");
  }
  const allowed = FILE_MEDIA_TYPES.filter((mediaType) => isWanted?.(mediaType) ?? true);
  if (!allowed.includes(given.mediaType)) {
    const named = given.mediaType === "" ? "without one" : JSON.stringify(given.mediaType.slice(0, 100));
    throw invalidField(path, `expected a media type out of ${allowed.join(", ")}, got data ${named}.`);
  }
  if (given.data === "") throw invalidField(path, "holds no data.");
}
