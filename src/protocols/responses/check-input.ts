// Validation of the field input: a text, or items with their content parts and files.

import { isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import { checkString, invalidField, missingField, wrongType, wrongWord } from "../fields.ts";
import { CONVERSATION_ROLES, FILE_MEDIA_TYPES, imageUrlOf, isItemReference, parseDataUrl } from "./wire.ts";

/** Most files of a request that are named instead of given. */
const MAX_FILE_REFERENCES = 20;

export function checkInput(input: unknown): void {
  if (!isPresent(input)) throw missingField("input", "a string or an array of items.");
  if (typeof input === "string") return;
  if (!Array.isArray(input)) throw wrongType("input", "a string or an array", input);
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
      if (isObject(part) && (isPresent(part.file_id) || isPresent(part.file_url))) count++;
    }
  }
  return count;
}

function checkItem(item: unknown, path: string): void {
  if (!isObject(item)) throw wrongType(path, "an object", item);
  const { type } = item;
  if (type !== "item_reference" && isItemReference(item)) return;
  if (!isPresent(type)) {
    if (item.role === undefined) throw missingField(`${path}.type`, "such as message or function_call_output.");
    checkMessage(item, path);
    return;
  }
  if (typeof type !== "string") throw wrongType(`${path}.type`, "a string", type);
  if (type === "message") checkMessage(item, path);
  for (const field of REQUIRED_STRINGS.get(type) ?? []) {
    if (typeof item[field] === "string") continue;
    if (!isPresent(item[field])) throw missingField(`${path}.${field}`, "a string.");
    throw wrongType(`${path}.${field}`, "a string", item[field]);
  }
  if (type === "function_call_output" || type === "custom_tool_call_output")
    checkContent(item.output, `${path}.output`);
}

const REQUIRED_STRINGS: ReadonlyMap<string, readonly string[]> = new Map([
  ["function_call", ["call_id", "name", "arguments"]],
  ["custom_tool_call", ["call_id", "name", "input"]],
  ["function_call_output", ["call_id"]],
  ["custom_tool_call_output", ["call_id"]],
  ["item_reference", ["id"]],
]);

function checkMessage({ role, content }: JsonObject, path: string): void {
  if (role === undefined) throw missingField(`${path}.role`, `one of ${CONVERSATION_ROLES.join(", ")}.`);
  if (!CONVERSATION_ROLES.includes(role)) throw wrongWord(`${path}.role`, CONVERSATION_ROLES, role);
  checkContent(content, `${path}.content`);
}

function checkContent(content: unknown, path: string): void {
  if (!isPresent(content)) throw missingField(path, "a string or an array of content parts.");
  if (typeof content === "string") return;
  if (!Array.isArray(content)) throw wrongType(path, "a string or an array of content parts", content);
  for (let index = 0; index < content.length; index++) checkPart(content[index], `${path}[${index}]`);
}

function checkPart(part: unknown, path: string): void {
  if (!isObject(part)) throw wrongType(path, "an object", part);
  switch (part.type) {
    case "text":
    case "input_text":
    case "output_text":
      if (typeof part.text === "string") return;
      throw wrongType(`${path}.text`, "a string", part.text);
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
  const field = isPresent(part.file_data) ? "file_data" : "file_url";
  checkString(part, field, path);
  const url = part[field];
  if (typeof url !== "string") throw missingField(`${path}.file_data`, "a file needs file_data or file_url.");
  if (field === "file_data" && parseDataUrl(url) === undefined) {
    throw invalidField(`${path}.file_data`, 'expected a base64 data URL such as "data:application/pdf;base64,...".');
  }
  checkUrl(url, `${path}.${field}`);
}

/** A file that a backend of this format may hold. What has to be translated is refused where it is (input-parts.ts). */
function namesFile(part: JsonObject, path: string): boolean {
  checkString(part, "file_id", path);
  return isPresent(part.file_id);
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
