// Token counts of answers that pass untouched: read where they stand, in a whole answer or at the end of a stream. So are
// the ids under which a vendor keeps the items of an answer.

import type { ProtocolName } from "../generation/content.ts";
import type { Usage } from "../generation/usage.ts";
import { isObject, type JsonObject, parseObject } from "../lib/json.ts";
import type { PassedAnswer } from "./chat/passed-answer.ts";
import { decodeUsage as chatUsage } from "./chat/usage.ts";
import { hasMarker, type Markers, markersOf } from "./markers.ts";
import { mergeUsage, decodeUsage as messagesUsage } from "./messages/usage.ts";
import { decodeUsage as responsesUsage } from "./responses/usage.ts";
import { outputItemIds } from "./responses/vendor-ids.ts";
import { readEvents } from "./sse.ts";

/** The counts of a whole answer; undefined when its backend did not count. */
export function usageOfAnswer(protocol: ProtocolName, body: JsonObject): Usage | undefined {
  switch (protocol) {
    case "messages":
      return messagesUsage(body.usage);
    case "responses":
      return responsesUsage(body.usage, 0);
    default:
      return chatUsage(body.usage);
  }
}

/** What is looked into besides the first events of a stream. A quote inside a JSON string is escaped. */
const MARKERS: Partial<Record<ProtocolName, Markers>> = {
  messages: markersOf('"message_delta"'),
  responses: markersOf('"response.completed"', '"response.incomplete"', '"response.failed"'),
};

const LINE_FEED = 10;
const CLOSING_BRACE = 125;
const CLOSING_BRACKET = 93;

const decoder = new TextDecoder();
const encoder = new TextEncoder();

export class UsageWatch {
  readonly #protocol: ProtocolName;
  readonly #hides: boolean;
  readonly #markers: Markers | undefined;
  readonly #passed: PassedAnswer | undefined;
  #isFirst = true;
  #counts: JsonObject | undefined;
  #itemIds: readonly string[] = [];

  /**
   * @param hides - the client did not ask for the counts, the gateway did; chat's usage chunk is taken out
   * @param passed - what else is changed in the events
   */
  constructor(protocol: ProtocolName, hides: boolean, passed?: PassedAnswer) {
    this.#protocol = protocol;
    this.#hides = hides;
    this.#passed = passed;
    this.#markers = MARKERS[protocol];
  }

  get usage(): Usage | undefined {
    return this.#counts === undefined ? undefined : usageOfAnswer(this.#protocol, { usage: this.#counts });
  }

  /** Ids of the items of a Responses answer, once it is complete. */
  get itemIds(): readonly string[] {
    return this.#itemIds;
  }

  /** The events for the client: the same bytes but for a usage chunk to be hidden; undefined when nothing is left. */
  push(received: Uint8Array): Uint8Array | undefined {
    const events = this.#passed === undefined ? received : this.#passed.push(received);
    if (!this.#mayHaveUsage(events)) return events;
    const text = decoder.decode(events);
    const found = readEvents(text);
    let hidden = 0;
    for (const { data } of found) {
      const chunk = parseObject(data);
      if (isObject(chunk?.response)) this.#itemIds = outputItemIds(chunk.response);
      const usage = chunk === undefined ? undefined : usageIn(chunk);
      if (usage === undefined || usage === null) continue;
      this.#counts = this.#protocol === "messages" ? mergeUsage(this.#counts, usage) : (usage as JsonObject);
      if (this.#hides && isUsageChunk(chunk as JsonObject)) hidden++;
    }
    if (hidden === 0) return events;
    const kept = found.filter(({ data }) => !isUsageChunk(parseObject(data) ?? {}));
    return kept.length === 0 ? undefined : encoder.encode(kept.map(({ data }) => `data: ${data}\n\n`).join(""));
  }

  #mayHaveUsage(events: Uint8Array): boolean {
    if (this.#markers === undefined) return endsLikeUsage(events);
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    return isFirst || hasMarker(events, this.#markers);
  }
}

/** A chunk with counts ends with two braces, an ordinary one with a bracket or a null; [DONE] may share its piece. */
function endsLikeUsage(events: Uint8Array): boolean {
  let end = events.length;
  while (end > 0 && (events[end - 1] === LINE_FEED || events[end - 1] === 13)) end--;
  const last = events[end - 1];
  return (last === CLOSING_BRACE && events[end - 2] === CLOSING_BRACE) || (last === CLOSING_BRACKET && end > 16);
}

function usageIn(event: JsonObject): unknown {
  const { usage, message, response } = event;
  if (isObject(usage)) return usage;
  if (isObject(message) && isObject(message.usage)) return message.usage;
  return isObject(response) && isObject(response.usage) ? response.usage : undefined;
}

function isUsageChunk({ choices, usage }: JsonObject): boolean {
  return Array.isArray(choices) && choices.length === 0 && isObject(usage);
}
