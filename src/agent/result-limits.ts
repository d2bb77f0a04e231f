// What a tool has brought, within bounds: for the model, and for the person who looks on.

import { shortenMiddle } from "./shorten-text.ts";
import type { ToolOutcome } from "./tool.ts";
import type { ToolContent } from "./updates.ts";

type Parts = ToolOutcome["parts"];

/** Limit of all texts of a result together, in UTF-16 code units. */
const MAX_RESULT_LENGTH = 256 * 1024;
/** Limit of all images and documents of a result together, in characters of base64. */
const MAX_DATA_LENGTH = 16 * 1024 * 1024;
const MAX_PARTS = 256;
/** A shorter piece of a text would not be useful. */
const SHORTEST_TEXT = 400;

export function boundedParts(parts: Parts): Parts {
  let textRoom = MAX_RESULT_LENGTH;
  let dataRoom = MAX_DATA_LENGTH;
  let leftOut = Math.max(0, parts.length - MAX_PARTS);
  const kept: Parts = [];
  for (const part of parts.slice(0, MAX_PARTS)) {
    if (part.type === "text") {
      if (part.text === "") continue;
      if (textRoom < Math.min(SHORTEST_TEXT, part.text.length)) leftOut++;
      else kept.push({ ...part, text: shortenMiddle(part.text, textRoom, noteOf) });
      textRoom = Math.max(0, textRoom - part.text.length);
      continue;
    }
    const length = part.source.kind === "base64" ? part.source.data.length : 0;
    if (length > dataRoom) leftOut++;
    else kept.push(part);
    dataRoom -= Math.min(length, dataRoom);
  }
  if (leftOut > 0)
    kept.push({ type: "text", text: `[... ${leftOut} more parts were left out: the result is too large ...]` });
  return kept.length > 0 ? kept : [{ type: "text", text: "(The tool gave no output.)" }];
}

function noteOf(leftOut: number): string {
  return `[... ${leftOut} characters were left out: the result is too large; ask for less ...]`;
}

/** Shown to the person where the tool has nothing else to show. */
export function shownParts(parts: Parts): ToolContent[] {
  return parts.map((part): ToolContent => {
    if (part.type !== "document") return { type: "part", part };
    return shownText(`[Document${part.title === undefined ? "" : `: ${part.title}`}]`);
  });
}

export function shownText(text: string): ToolContent {
  return { type: "part", part: { type: "text", text } };
}

/** The raw value for programs; undefined when it is too large for an update. */
export function boundedRaw<Value>(value: Value): Value | undefined {
  if (value === undefined) return undefined;
  const text: string | undefined = JSON.stringify(value);
  return text !== undefined && text.length <= MAX_RESULT_LENGTH ? value : undefined;
}
