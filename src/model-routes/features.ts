// What a request brings or asks for, as the conditions of routes name it: read of the neutral form, so that it is the same in
// every format of clients.

import type { Feature } from "../config/sections/routes.ts";
import type { ContentPart } from "../generation/content.ts";
import type { GenerationRequest } from "../generation/request.ts";

const OF_PARTS: Readonly<Partial<Record<ContentPart["type"], Feature>>> = {
  image: "image",
  audio: "audio",
  document: "file",
};

export function featuresOf({ messages, tools, reasoning, responseFormat }: GenerationRequest): ReadonlySet<Feature> {
  const found = new Set<Feature>();
  const addParts = (parts: readonly ContentPart[]): void => {
    for (const part of parts) {
      const feature = OF_PARTS[part.type];
      if (feature !== undefined) found.add(feature);
      if (part.type === "tool-result") addParts(part.parts);
    }
  };
  for (const { parts } of messages) addParts(parts);
  if (tools.length > 0) found.add("tools");
  if (responseFormat?.type === "json-schema") found.add("json_schema");
  const { effort, budgetTokens = 0, enabled } = reasoning;
  if (enabled !== false && (enabled === true || budgetTokens > 0 || (effort !== undefined && effort !== "none"))) {
    found.add("reasoning");
  }
  return found;
}
