// Google Cloud's Vertex AI: its addresses, the names of its models as resources, and the version of Claude's bodies.
// Sources: @google/genai with vertexai: true (addresses, resources), @anthropic-ai/vertex-sdk and Anthropic's "Claude on
// Vertex AI" (the version).

import type { BackendSettings } from "../../config/sections/registry.ts";

/** Locations that stand for several regions have addresses of another form. */
const MULTI_REGIONS: ReadonlySet<string> = new Set(["us", "eu"]);
const EVERYWHERE = "global";

export function usualAddress({ location = EVERYWHERE }: BackendSettings): string {
  if (location === EVERYWHERE) return "https://aiplatform.googleapis.com";
  if (MULTI_REGIONS.has(location)) return `https://aiplatform.${location}.rep.googleapis.com`;
  return `https://${location}-aiplatform.googleapis.com`;
}

const RESOURCE = /^(?:publishers\/)?([^/]+)\/(?:models\/)?([^/]+)$/;

/** "gemini-x", "google/gemini-x" and "publishers/google/models/gemini-x" name the same model. */
export function bareName(model: string): string {
  return RESOURCE.exec(model)?.[2] ?? model;
}

/** @param usualPublisher - of models whose name says none */
export function resourceOf(
  model: string,
  { project = "", location = EVERYWHERE }: BackendSettings,
  usualPublisher: string,
) {
  const publisher = RESOURCE.exec(model)?.[1] ?? usualPublisher;
  const place = `projects/${segment(project)}/locations/${segment(location)}`;
  return `${place}/publishers/${segment(publisher)}/models/${segment(bareName(model))}`;
}

/** Versions stand behind an "@", which Google's own clients leave as it is. */
function segment(text: string): string {
  return encodeURIComponent(text).replaceAll("%40", "@").replaceAll("%3A", ":");
}

/** The first version of the Messages API has a name of its own here. */
const FIRST_VERSION = { elsewhere: "2023-06-01", here: "vertex-2023-10-16" };

export function versionMember(version = FIRST_VERSION.elsewhere) {
  return { anthropic_version: version === FIRST_VERSION.elsewhere ? FIRST_VERSION.here : version };
}
