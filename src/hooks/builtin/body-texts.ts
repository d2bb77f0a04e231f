// The texts that a body holds, whatever its format: changed one by one, with all that is no text left as it is.

import { isObject } from "../../lib/json.ts";

/** Members that name or encode something, and are nothing that a person has written. */
const NO_TEXTS: ReadonlySet<string> = new Set([
  ...[
    "model",
    "role",
    "type",
    "id",
    "object",
    "index",
    "status",
    "phase",
    "finish_reason",
    "stop_reason",
    "native_finish_reason",
  ],
  ...[
    "call_id",
    "tool_call_id",
    "tool_use_id",
    "item_id",
    "response_id",
    "previous_response_id",
    "conversation",
    "callId",
  ],
  ...[
    "prompt_cache_key",
    "cache_control",
    "file_id",
    "fileId",
    "image_url",
    "file_url",
    "fileUri",
    "file_data",
    "data",
  ],
  ...[
    "b64_json",
    "signature",
    "thoughtSignature",
    "encrypted_content",
    "sealed",
    "media_type",
    "mediaType",
    "mimeType",
  ],
  ...[
    "format",
    "service_tier",
    "system_fingerprint",
    "reasoning_effort",
    "tool_choice",
    "toolChoice",
    "encoding_format",
  ],
  ...["tools", "response_format", "responseFormat", "responseSchema", "responseJsonSchema", "origin", "protocol"],
]);

/** Members whose text is JSON itself. */
const JSON_TEXTS: ReadonlySet<string> = new Set(["arguments", "partial_json"]);

export type TextChange = (text: string, isJson: boolean) => string;

/** The value with its texts changed; the same value where none was. */
export function changeTexts(value: unknown, change: TextChange, name = ""): unknown {
  if (typeof value === "string") return value === "" ? value : change(value, JSON_TEXTS.has(name));
  if (Array.isArray(value)) {
    let changed: unknown[] | undefined;
    for (const [index, entry] of value.entries()) {
      const next = changeTexts(entry, change, name);
      if (next === entry) continue;
      changed ??= [...value];
      changed[index] = next;
    }
    return changed ?? value;
  }
  if (!isObject(value)) return value;
  let changed: Record<string, unknown> | undefined;
  for (const [key, entry] of Object.entries(value)) {
    if (NO_TEXTS.has(key)) continue;
    const next = changeTexts(entry, change, key);
    if (next === entry) continue;
    changed ??= { ...value };
    changed[key] = next;
  }
  return changed ?? value;
}

export function textsIn(value: unknown): string[] {
  const texts: string[] = [];
  changeTexts(value, (text) => {
    texts.push(text);
    return text;
  });
  return texts;
}
