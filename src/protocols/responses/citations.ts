// Citations of a text: annotations in this format.

import type { Citation } from "../../generation/content.ts";
import type { JsonObject } from "../../lib/json.ts";
import { countOf, optionalText } from "./wire.ts";

export function decodeCitation(annotation: JsonObject): Citation {
  const url = optionalText(annotation.url);
  const title = optionalText(annotation.title) ?? optionalText(annotation.filename);
  const startIndex = countOf(annotation.start_index);
  const endIndex = countOf(annotation.end_index);
  return {
    ...(url !== undefined && { url }),
    ...(title !== undefined && { title }),
    ...(startIndex !== undefined && { startIndex }),
    ...(endIndex !== undefined && { endIndex }),
    origin: { protocol: "responses", value: annotation },
  };
}

/**
 * Undefined for a citation that this format cannot show: it has no form for places in documents of the request.
 * `textLength` is that of the text so far, which a citation without offsets is taken to speak of.
 */
export function encodeCitation(citation: Citation, textLength: number): JsonObject | undefined {
  const { origin, url, title, startIndex, endIndex } = citation;
  if (origin?.protocol === "responses") {
    const place = {
      ...(startIndex !== undefined && { start_index: startIndex }),
      ...(endIndex !== undefined && { end_index: endIndex }),
    };
    return { ...origin.value, ...place }; // in a joined answer it may stand elsewhere
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
