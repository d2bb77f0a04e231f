// Which backends may be asked for a request with pictures, sound or films: those that take them, as far as anybody knows.

import type { Backend } from "../backends/backend.ts";
import type { BackendEntry } from "../backends/board.ts";
import type { ModelMetadata } from "../config/sections/metadata-entry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Medium, Offer } from "../generation/intake.ts";
import { BoundedMap } from "../lib/bounded-map.ts";
import type { JsonObject } from "../lib/json.ts";
import { intakeOfCapabilities } from "../models/intake.ts";
import { mediaIn } from "../protocols/media-parts.ts";
import type { ModelRequest } from "./model-request.ts";

/** What is asked, as far as it matters here. Without a body nothing is known of its media. */
export type AskedMedia = Pick<ModelRequest, "model"> & Partial<Pick<ModelRequest, "body">>;

export type MediaFit = ReturnType<typeof createMediaFit>;

/** How long the words of an engine count. It may have been restarted with another projector. */
const REMEMBERED_MS = 10 * 60 * 1000;
const MAX_REMEMBERED = 2_000;
const MAX_REMEMBERED_BYTES = 1024 * 1024;

/** What engines have refused in their own words: by backend, model and medium, with what the backend offered then. */
type RefusedMedia = BoundedMap<Offer | "nothing known">;

export function createRefusedMedia(now: () => number): RefusedMedia {
  return new BoundedMap({ maxEntries: MAX_REMEMBERED, maxBytes: MAX_REMEMBERED_BYTES, ttlMs: REMEMBERED_MS, now });
}

interface MediaFitParts {
  refusedMedia: RefusedMedia;
  /** What is known of a model on a backend, from whichever source. */
  metadataOf(backend: Backend, model: string): ModelMetadata | undefined;
  /** What the backend's own configuration says of it. */
  configuredOf(backend: Backend, model: string): ModelMetadata | undefined;
}

/** Of one list of backends; others begin their turns from the start. */
const MAX_CHOICES = 16;

const NO_MEDIA: readonly Medium[] = [];
const WORDS: Readonly<Record<Medium, string>> = { image: "pictures", audio: "sound", video: "films" };

export function createMediaFit({ refusedMedia, metadataOf, configuredOf }: MediaFitParts) {
  const mediaOfBodies = new WeakMap<JsonObject, readonly Medium[]>();
  /** By what they were chosen of, so that equal choices are one array and its turns go on. */
  const chosenOf = new WeakMap<readonly BackendEntry[], Map<string, readonly BackendEntry[]>>();

  function mediaOf({ body }: AskedMedia): readonly Medium[] {
    // The texts of a form have no parts.
    if (body === undefined || body.contentType !== undefined) return NO_MEDIA;
    const { value } = body;
    let media = mediaOfBodies.get(value);
    if (media === undefined) {
      media = mediaIn(value);
      mediaOfBodies.set(value, media);
    }
    return media;
  }

  /** Whether anything may be known that stands against media. */
  function isKnown({ offer, backend }: BackendEntry, model: string): boolean {
    return refusedMedia.size > 0 || backend.settings.model_configs.length > 0 || offer?.intakes.has(model) === true;
  }

  /** The same for one of several. On the path of every request. */
  function isAnyKnown(entries: readonly BackendEntry[], model: string): boolean {
    for (const entry of entries) if (isKnown(entry, model)) return true;
    return false;
  }

  /** The words of the engine first, then what its operator says, what it lists, and what is known of the model anywhere. */
  function takes(entry: BackendEntry, model: string, medium: Medium): boolean | undefined {
    const { backend, offer } = entry;
    if (refusedMedia.get(keyOf(backend.name, model, medium)) === (offer ?? "nothing known")) return false;
    const configured = configuredOf(backend, model)?.capabilities;
    if (configured !== undefined) return intakeOfCapabilities(configured)[medium];
    const listed = offer?.intakes.get(model)?.[medium];
    if (listed !== undefined) return listed;
    const known = metadataOf(backend, model)?.capabilities;
    // A list that is not of this backend may be short.
    return known !== undefined && intakeOfCapabilities(known)[medium] === true ? true : undefined;
  }

  function lackOf(entry: BackendEntry, model: string, media: readonly Medium[]): Medium | undefined {
    return media.find((medium) => takes(entry, model, medium) === false);
  }

  /** Whether it is known to. */
  function takesAll(entry: BackendEntry, asked: AskedMedia): boolean {
    return mediaOf(asked).every((medium) => takes(entry, asked.model, medium) === true);
  }

  function chosen(entries: readonly BackendEntry[], isChosen: (entry: BackendEntry) => boolean) {
    const kept = entries.filter(isChosen);
    if (kept.length === entries.length) return entries;
    const key = kept.map(({ backend }) => backend.name).join("\n");
    let known = chosenOf.get(entries);
    if (known === undefined) {
      known = new Map();
      chosenOf.set(entries, known);
    }
    const same = known.get(key);
    if (same !== undefined) return same;
    if (known.size >= MAX_CHOICES) known.clear();
    known.set(key, kept);
    return kept;
  }

  return {
    takes,
    takesAll,
    isAnyKnown,
    /** Those that may take the media of a request; where some are known to, and may be asked, these alone. */
    fitting(
      entries: readonly BackendEntry[],
      asked: AskedMedia,
      mayAsk: (entry: BackendEntry) => boolean,
    ): readonly BackendEntry[] {
      const { model } = asked;
      const media = mediaOf(asked);
      if (media.length === 0) return entries;
      const fit = chosen(entries, (entry) => lackOf(entry, model, media) === undefined);
      const isSure = (entry: BackendEntry) => takesAll(entry, asked) && mayAsk(entry);
      return fit.some(isSure) ? chosen(fit, isSure) : fit;
    },
    /** The refusal when no backend of the model takes what the request holds; undefined when one may. */
    refusal(serving: readonly BackendEntry[], asked: AskedMedia): GatewayError | undefined {
      const { model } = asked;
      const media = isAnyKnown(serving, model) ? mediaOf(asked) : NO_MEDIA;
      if (media.length === 0) return undefined;
      const lacks = serving.map((entry) => lackOf(entry, model, media));
      const [lack] = lacks;
      if (lack === undefined || lacks.includes(undefined)) return undefined;
      const message = `The model '${model}' takes no ${WORDS[lack]}; send text, or ask a model that takes them.`;
      return new GatewayError(ERRORS.unsupportedContent, message, { param: "model" });
    },
    /** An engine has refused a request for what it holds. */
    refused({ backend, offer }: BackendEntry, asked: AskedMedia, lacks: Medium | "media"): void {
      for (const medium of mediaOf(asked)) {
        if (lacks !== "media" && lacks !== medium) continue;
        const key = keyOf(backend.name, asked.model, medium);
        refusedMedia.set(key, offer ?? "nothing known", key.length);
      }
    },
  };
}

function keyOf(backendName: string, model: string, medium: Medium): string {
  return `${backendName}\n${model}\n${medium}`;
}
