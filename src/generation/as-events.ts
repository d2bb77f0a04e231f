// A whole answer -> the events of a stream that says the same, so that there is one way to change and to watch answers.

import type { ContentPart } from "./content.ts";
import type { GenerationEvent } from "./events.ts";
import type { GenerationResult } from "./result.ts";

export function asEvents(result: GenerationResult): GenerationEvent[] {
  const { id, model, createdAt, parts, usage, finish } = result;
  const events: GenerationEvent[] = [{ type: "start", id, model, createdAt }];
  for (const [index, part] of parts.entries()) {
    events.push(...partEvents(index, part));
    events.push({ type: "part-end", index });
  }
  if (usage !== undefined) events.push({ type: "usage", usage });
  events.push({ type: "finish", finish });
  return events;
}

function partEvents(index: number, part: ContentPart): GenerationEvent[] {
  switch (part.type) {
    case "text": {
      const { text, citations = [], signature } = part;
      return [
        { type: "part-start", index, part: { type: "text" } },
        ...delta(index, text),
        ...citations.map((citation) => ({ type: "citation", index, citation }) as const),
        // Only Gemini signs text.
        ...(signature === undefined ? [] : [{ type: "seal", index, origin: "generate-content", signature } as const]),
      ];
    }
    case "refusal":
      return [{ type: "part-start", index, part: { type: "refusal" } }, ...delta(index, part.text)];
    case "reasoning": {
      const { text, signature, sealed, origin, itemId } = part;
      const proof = { ...(signature !== undefined && { signature }), ...(sealed !== undefined && { sealed }) };
      return [
        { type: "part-start", index, part: { type: "reasoning", ...(itemId !== undefined && { itemId }) } },
        ...delta(index, text),
        // A proof of unknown origin cannot be replayed.
        ...(origin === undefined ? [] : [{ type: "seal", index, origin, ...proof } as const]),
      ];
    }
    case "tool-call": {
      const { arguments: text, cache: _onlyInRequests, ...start } = part;
      return [{ type: "part-start", index, part: start }, ...delta(index, text)];
    }
    case "search-result":
    case "opaque":
    case "image":
    case "audio":
      return [{ type: "part-start", index, part }];
    default:
      // Documents, videos and tool results are what models read, not what they answer.
      throw new Error(`a part of type ${part.type} cannot stand in an answer`);
  }
}

/** Deltas are never empty. */
function delta(index: number, text: string): GenerationEvent[] {
  return text === "" ? [] : [{ type: "delta", index, text }];
}
