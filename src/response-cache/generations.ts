// Which answers of a bucket count. To clear is to begin another generation, of all models or of one: what was written under
// an earlier one is never asked for again, by any gateway and after any restart. A generation is known by an object.

import { BoundedMap } from "../lib/bounded-map.ts";
import { parseObject } from "../lib/json.ts";
import { BucketTrouble } from "../object-storage/bucket.ts";
import type { SmallObjects } from "../object-storage/small-objects.ts";
import { digestOf } from "./stored-answer.ts";

interface Marker {
  generation: string;
  readMs: number;
}

interface CacheGenerationParts {
  objects: Pick<SmallObjects, "get" | "put">;
  prefix: string;
  now(): number;
  /** Another gateway has cleared the answers of this model, or all. */
  cleared(model: string | undefined): void;
}

/** Before anybody has cleared anything. */
const FIRST = "first";

/** After this time a marker is read again, while it is used. */
const REREAD_AFTER_MS = 5_000;
/** After this time it is read before the bucket is asked: by then a clear is seen by every gateway. */
const STALE_AFTER_MS = 10_000;
/** Clients choose the names of models. */
const MAX_MODELS = 1_000;
const MAX_MARKER_BYTES = 1024;
const READ_TIMEOUT_MS = 1_000;

const decoder = new TextDecoder();
const encoder = new TextEncoder();

export function createGenerations({ objects, prefix, now, cleared }: CacheGenerationParts) {
  const markers = new BoundedMap<Marker>({
    maxEntries: MAX_MODELS + 1,
    maxBytes: Number.POSITIVE_INFINITY,
    ttlMs: Number.POSITIVE_INFINITY,
    now,
  });
  /** Generations that were begun here and are not published yet. */
  const unwritten = new Map<string, string>();

  /** By the names of markers: however many want to know, one asks. */
  const readings = new Map<string, Promise<void>>();

  function read(name: string, model: string | undefined): Promise<void> {
    const reading =
      readings.get(name) ??
      readNow(name, model, AbortSignal.timeout(READ_TIMEOUT_MS)).finally(() => readings.delete(name));
    readings.set(name, reading);
    return reading;
  }

  async function readNow(name: string, model: string | undefined, signal: AbortSignal): Promise<void> {
    const object = await objects.get(name, { maxBytes: MAX_MARKER_BYTES, signal });
    const generation = object === undefined ? FIRST : generationIn(object);
    if (generation === undefined) throw new BucketTrouble("a marker of cleared answers cannot be read");
    const known = markers.get(name);
    markers.set(name, { generation, readMs: now() }, 0);
    if (known !== undefined && known.generation !== generation && !unwritten.has(name)) cleared(model);
  }

  async function tell(name: string, generation: string, signal: AbortSignal): Promise<void> {
    await objects.put(name, encoder.encode(`${JSON.stringify({ signalbox_generation: generation })}\n`), signal);
    if (unwritten.get(name) !== generation) return;
    unwritten.delete(name);
    markers.set(name, { generation, readMs: now() }, 0);
  }

  async function one(model: string | undefined, signal: AbortSignal): Promise<string> {
    const name = markerName(model);
    const begun = unwritten.get(name);
    if (begun !== undefined) {
      await tell(name, begun, signal);
      return begun;
    }
    const marker = markers.get(name);
    const ageMs = marker === undefined ? Number.POSITIVE_INFINITY : now() - marker.readMs;
    if (ageMs > STALE_AFTER_MS) await read(name, model);
    else if (ageMs > REREAD_AFTER_MS) reread(name, model);
    return known(model) ?? FIRST;
  }

  function reread(name: string, model: string | undefined): void {
    // The next lookup finds out whether the bucket is there.
    read(name, model).catch(() => undefined);
  }

  function known(model: string | undefined): string | undefined {
    const name = markerName(model);
    return unwritten.get(name) ?? markers.get(name)?.generation;
  }

  function markerName(model: string | undefined): string {
    return `${prefix}cleared/${model === undefined ? "all" : `model-${digestOf(model)}`}`;
  }

  return {
    /** The beginning of the names of a model's answers. Rejects where it is not known. */
    async folderOf(model: string, signal: AbortSignal): Promise<string> {
      const [all, own] = await Promise.all([one(undefined, signal), one(model, signal)]);
      return folder(prefix, all, own);
    },
    /** As folderOf(), as far as it is known now. */
    knownFolderOf: (model: string) => folder(prefix, known(undefined), known(model)),
    /** Sees to it that a clear by another gateway is noticed, though only the memory is asked. */
    keepFresh(model: string): void {
      for (const each of [undefined, model]) {
        const name = markerName(each);
        const marker = markers.get(name);
        if (marker !== undefined && now() - marker.readMs > REREAD_AFTER_MS && !unwritten.has(name)) reread(name, each);
      }
    },
    /** From now on nothing older counts here. Rejects where others could not be notified; they will be as soon as possible. */
    async begin(model: string | undefined, signal: AbortSignal): Promise<void> {
      // So many that could not be notified are all of them.
      const name = markerName(unwritten.size < MAX_MODELS ? model : undefined);
      const generation = crypto.randomUUID().replaceAll("-", "");
      unwritten.set(name, generation);
      await tell(name, generation, signal);
    },
  };
}

function folder(prefix: string, all: string | undefined, own: string | undefined): string {
  return `${prefix}answers/${all}.${own}/`;
}

function generationIn(object: Uint8Array | "too-large"): string | undefined {
  if (object === "too-large") return undefined;
  const generation = parseObject(decoder.decode(object))?.signalbox_generation;
  return typeof generation === "string" && /^[0-9a-f]{32}$/.test(generation) ? generation : undefined;
}
