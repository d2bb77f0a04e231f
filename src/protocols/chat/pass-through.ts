// Chat requests and answers that pass: what chat engines are not given as the client wrote it, and what is changed for it.

import { chatEffort, lostReasoning } from "../../generation/reasoning-effort.ts";
import { isObject, type JsonObject, joined } from "../../lib/json.ts";
import { isDataUrl } from "../../media/data-url.ts";
import { decodeUsage } from "../chunk-usage.ts";
import { ChunkWatch } from "../chunk-watch.ts";
import { mergeContent, type PromptMerge } from "../inject-prompt.ts";
import type { Adapted, PassTarget, PassThrough } from "../protocol.ts";
import { answerEdits } from "./answer-edits.ts";
import { adaptChatBody } from "./quirks.ts";
import { readPrompt } from "./read-prompt.ts";
import { adaptToVendor } from "./vendor-rules.ts";

export const chatPassThrough: PassThrough = {
  // Engines leave thoughts in the text where other formats have a place for them.
  mustTranslate: (body, splitsThoughts, fetchesNothing) => splitsThoughts || (fetchesNothing && hasExternalImage(body)),
  adapt,
  injectPrompt({ messages }, prompt, merge) {
    return Array.isArray(messages) ? { messages: injectIntoMessages(messages, prompt, merge) } : undefined;
  },
  readPrompt,
  askUsage({ stream_options }, { chat }) {
    if (!chat.countsStreams) return undefined;
    const options = stream_options as JsonObject | null | undefined; // checked when it was read
    return options?.include_usage === true ? undefined : { stream_options: { ...options, include_usage: true } };
  },
  editAnswer: (body, { chat }) => answerEdits(body, chat),
  usageOf: ({ usage }) => decodeUsage(usage),
  preamble: new Set(["ping"]),
  watch: (options) => new ChunkWatch(options),
};

function adapt(body: JsonObject, target: PassTarget): Adapted | undefined {
  const { chat } = target.kind;
  const members = joined(adaptChatBody(body, chat), chatEffort(body, target));
  const ofVendor =
    chat.vendor && adaptToVendor(members === undefined ? body : { ...body, ...members }, chat.vendor, target.model);
  if (ofVendor !== undefined) {
    return {
      members: { ...members, ...ofVendor.members },
      lost: [...lostReasoning(body, target), ...(ofVendor.lost ?? [])],
    };
  }
  return members && { members, lost: lostReasoning(body, target) };
}

/** Whether a request names pictures by address. */
function hasExternalImage({ messages }: JsonObject): boolean {
  if (!Array.isArray(messages)) return false;
  return messages.some(
    (message: unknown) => isObject(message) && Array.isArray(message.content) && message.content.some(isExternalImage),
  );
}

function isExternalImage(part: unknown): boolean {
  if (!isObject(part) || part.type !== "image_url") return false;
  const url = isObject(part.image_url) ? part.image_url.url : part.image_url;
  // What is no link to fetch is refused there, instead of being tried by the backend.
  return typeof url === "string" && !isDataUrl(url);
}

/** Instructions come first; later ones belong to their place in the conversation and stay. */
function injectIntoMessages(messages: readonly unknown[], prompt: string, merge: PromptMerge): unknown[] {
  const end = messages.findIndex((message) => !isInstruction(message));
  const leading = messages.slice(0, end < 0 ? messages.length : end) as JsonObject[];
  const rest = messages.slice(leading.length);
  const first = leading[0];
  if (first === undefined) return [{ role: "system", content: prompt }, ...rest];
  if (merge.strategy === "replace") return [{ ...first, content: prompt }, ...rest];
  const place = merge.strategy === "prepend" ? 0 : leading.length - 1;
  const changed = leading.map((message, index) =>
    index === place ? { ...message, content: mergeContent(message.content, prompt, merge) } : message,
  );
  return [...changed, ...rest];
}

function isInstruction(message: unknown): message is JsonObject {
  return isObject(message) && (message.role === "system" || message.role === "developer");
}
