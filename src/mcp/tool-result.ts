// What a tool of an MCP server has answered, as parts that a model reads. What no model takes is said in words; sizes are
// bounded, because a server may answer anything.

import type { ToolOutcome } from "../agent/tool.ts";
import type { DocumentPart, ImagePart, TextPart } from "../generation/content.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import { oneLine } from "./masked.ts";

type ResultPart = TextPart | ImagePart | DocumentPart;

const MAX_TEXT_LENGTH = 400_000;
const MAX_PARTS = 100;
/** Of base64, of all images and documents of a result together. */
const MAX_MEDIA_LENGTH = 20 * 1024 * 1024;
const MAX_RAW_LENGTH = 64 * 1024;
const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const DOCUMENTS = ["application/pdf"];
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

export function readToolResult(result: unknown): ToolOutcome {
  if (!isObject(result)) return { parts: [note("The tool's answer was not understood.")], isError: true };
  const reader = createReader();
  const { content, structuredContent } = result;
  if (Array.isArray(content)) for (const block of content) reader.read(block);
  // Servers of the first days answered with this member alone.
  else if (result.toolResult !== undefined) reader.text(json(result.toolResult));
  if (structuredContent !== undefined && !reader.hasText()) reader.text(json(structuredContent));
  const outcome: ToolOutcome = { parts: reader.parts() };
  if (result.isError === true) outcome.isError = true;
  if (structuredContent !== undefined && json(structuredContent).length <= MAX_RAW_LENGTH)
    outcome.rawOutput = structuredContent;
  return outcome;
}

function createReader() {
  const parts: ResultPart[] = [];
  let textLength = 0;
  let mediaLength = 0;
  let leftOut = 0;
  let hasText = false;

  function text(value: string): void {
    if (parts.length >= MAX_PARTS || textLength >= MAX_TEXT_LENGTH) {
      leftOut++;
      return;
    }
    const room = MAX_TEXT_LENGTH - textLength;
    const cut = value.length - room;
    parts.push({
      type: "text",
      text: cut > 0 ? `${value.slice(0, room)}\n[${cut} more characters were left out]` : value,
    });
    textLength += value.length;
  }

  /** False: it is nothing that a model is given. */
  function media(data: unknown, type: unknown, title?: string): boolean {
    const mediaType = typeof type === "string" ? (type.split(";")[0] ?? "").trim().toLowerCase() : "";
    const isImage = IMAGES.includes(mediaType);
    if (!isImage && !DOCUMENTS.includes(mediaType)) return false;
    if (typeof data !== "string" || !BASE64.test(data)) return false;
    if (parts.length >= MAX_PARTS || mediaLength + data.length > MAX_MEDIA_LENGTH) {
      leftOut++;
      return true;
    }
    mediaLength += data.length;
    const source = { kind: "base64", mediaType, data } as const;
    parts.push(isImage ? { type: "image", source } : { type: "document", source, ...(title && { title }) });
    return true;
  }

  function read(block: unknown): void {
    if (!isObject(block)) return;
    const { type } = block;
    if (type === "text" && typeof block.text === "string") {
      hasText = true;
      if (block.text !== "") text(block.text);
    } else if (type === "image" || type === "audio") {
      if (!media(block.data, block.mimeType)) text(told(type, block.mimeType, block.data));
    } else if (type === "resource" && isObject(block.resource)) resource(block.resource);
    else if (type === "resource_link") text(linkText(block));
    else text(`[content of the type ${oneLine(String(type), 50)}, which cannot be shown]`);
  }

  function resource({ uri, text: content, blob, mimeType }: JsonObject): void {
    const address = oneLine(String(uri), 2_000);
    if (typeof content === "string") text(`[resource ${address}]\n${content}`);
    else if (typeof mimeType === "string" && mimeType.startsWith("text/") && typeof blob === "string")
      text(`[resource ${address}]\n${Buffer.from(blob, "base64").toString()}`);
    else if (!media(blob, mimeType, address)) text(told(`resource ${address}`, mimeType, blob));
  }

  return {
    read,
    text,
    hasText: () => hasText,
    parts(): ResultPart[] {
      if (leftOut > 0) parts.push(note(`${leftOut} more pieces of content were left out.`));
      return parts.length === 0 ? [note("The tool has answered without content.")] : parts;
    },
  };
}

function note(text: string): TextPart {
  return { type: "text", text: `[${text}]` };
}

function told(what: string, mimeType: unknown, data: unknown): string {
  const bytes = typeof data === "string" ? Math.floor((data.length * 3) / 4) : 0;
  const type = typeof mimeType === "string" ? oneLine(mimeType, 100) : "of an unknown type";
  return `[${what}, ${type}, about ${bytes} bytes: cannot be shown to a model]`;
}

function linkText({ uri, name, title, description, mimeType }: JsonObject): string {
  const facts = [title ?? name, mimeType, description].filter((fact) => typeof fact === "string" && fact !== "");
  return `[link to the resource ${oneLine(String(uri), 2_000)}${facts.length === 0 ? "" : `: ${oneLine(facts.join(", "), 2_000)}`}]`;
}

function json(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
