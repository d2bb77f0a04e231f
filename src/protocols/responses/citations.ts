// Citations of a text: annotations in this format.

import type { Citation } from "../../generation/content.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import { nonEmptyText, wholeNumberOf } from "../reading.ts";

export function decodeCitation(annotation: JsonObject): Citation {
  return compact({
    url: nonEmptyText(annotation.url),
    title: nonEmptyText(annotation.title) ?? nonEmptyText(annotation.filename),
    startIndex: wholeNumberOf(annotation.start_index),
    endIndex: wholeNumberOf(annotation.end_index),
    origin: { protocol: "responses", value: annotation },
  });
}

/**
 * Undefined for a citation that this format cannot show: it has no form for places in documents of the request.
 * `textLength` is that of the text so far, which a citation without offsets is taken to speak of.
 */
export function encodeCitation(citation: Citation, textLength: number): JsonObject | undefined {
  const { origin, url, title, startIndex, endIndex } = citation;
  if (origin?.protocol === "responses") {
    // In a joined answer it may stand elsewhere.
    return { ...origin.value, ...compact({ start_index: startIndex, end_index: endIndex }) };
  }
  if (url === undefined) return undefined;
  return {
    type: "url_citation",
    url,
    title: title ?? url,
    start_index: startIndex ?? 0,
    end_index: endIndex ?? textLength,
  };
}
