// Model lists as data: reading the shapes that backends answer with, and joining them into one list.

import type { Backend } from "../backends/backend.ts";
import { kindFor } from "../backends/kind.ts";
import type { Intake } from "../generation/intake.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import { intakeInList } from "./intake.ts";

export interface ModelListEntry {
  id: string;
  object: "model";
  /** Unix time in seconds. */
  created: number;
  owned_by: string;
  permission: readonly never[];
  root: string;
  parent: null;
  /** Names of the backends that serve it; not shown while metadata enrichment is off. */
  backends: readonly string[];
}

/** The facts of a model for GET /v1/models/{model}. */
export interface FoundModel {
  id: string;
  created: number;
  owned_by: string;
  available: boolean;
  /** Names of the backends that serve it, also of those that are not available. */
  backends: readonly string[];
}

/** One model in a backend's list. */
export interface ModelRecord {
  id: string;
  /** Unix time in seconds. */
  created: number | undefined;
  ownedBy: string | undefined;
  /** Media besides text that the model takes, as far as the list says. */
  intake?: Intake | undefined;
}

/** A record as it is kept: models of unknown age were created when they were first seen. */
export interface ListedModel extends ModelRecord {
  created: number;
}

/**
 * The models of a backend's answer: `data[].id` (OpenAI, Anthropic), `models[].name` as `models/x` (Gemini),
 * `publisherModels[].name` as `publishers/google/models/x` (Vertex AI),
 * `modelSummaries[].modelId` and `inferenceProfileSummaries[].inferenceProfileId` (Bedrock), `models[].key` (LM Studio) or
 * a bare array. undefined: this is no model list. Entries without a name are skipped.
 */
export function readModelList(answer: unknown): ModelRecord[] | undefined {
  if (Array.isArray(answer)) return readItems(answer);
  if (!isObject(answer)) return undefined;
  const { data } = answer;
  const models = answer.models ?? answer.publisherModels ?? answer.modelSummaries ?? answer.inferenceProfileSummaries;
  const records = Array.isArray(data) ? readItems(data) : [];
  if (records.length === 0 && Array.isArray(models)) return readItems(models);
  // An engine without models may write null in place of the empty list.
  return Array.isArray(data) || data === null ? records : undefined;
}

function readItems(items: readonly unknown[]): ModelRecord[] {
  const seen = new Set<string>();
  const records: ModelRecord[] = [];
  for (const item of items) {
    const record = readItem(item);
    if (record === undefined || seen.has(record.id)) continue;
    seen.add(record.id);
    records.push(record);
  }
  return records;
}

function readItem(item: unknown): ModelRecord | undefined {
  if (typeof item === "string") return item === "" ? undefined : { id: item, created: undefined, ownedBy: undefined };
  const id = isObject(item) && isAnswering(item) ? readId(item) : undefined;
  if (id === undefined) return undefined;
  const { created, created_at, owned_by } = item as JsonObject;
  const ownedBy = typeof owned_by === "string" && owned_by !== "" ? owned_by : undefined;
  const intake = intakeInList(item as JsonObject);
  return { id, created: readTime(created ?? created_at), ownedBy, ...(intake !== undefined && { intake }) };
}

/** Bedrock lists models that draw or speak only, too. */
function isAnswering({ outputModalities }: JsonObject): boolean {
  return !Array.isArray(outputModalities) || outputModalities.some((what) => what === "TEXT" || what === "EMBEDDING");
}

function readId({ id, key, name, modelId, inferenceProfileId }: JsonObject): string | undefined {
  for (const text of [id, key, modelId, inferenceProfileId]) if (typeof text === "string" && text !== "") return text;
  // Only a resource name has the prefix; as an id, "models/x.gguf" is the path of a file.
  return typeof name === "string" && name !== ""
    ? name.replace(/^(?:publishers\/[^/]+\/)?models\/(?=.)/, "")
    : undefined;
}

/** Whole seconds from a Unix time in seconds or milliseconds, or from a date text. */
function readTime(value: unknown): number | undefined {
  if (typeof value === "number" && value > 0 && Number.isFinite(value)) {
    return Math.floor(value > 100_000_000_000 ? value / 1000 : value);
  }
  if (typeof value !== "string") return undefined;
  const timeMs = Date.parse(value);
  return timeMs > 0 ? Math.floor(timeMs / 1000) : undefined;
}

interface BackendModels {
  backend: Backend;
  models: readonly ListedModel[];
}

/** One list without duplicates; of a model that several backends serve, the first backend's words are taken. */
export function aggregateModels(lists: readonly BackendModels[]): ModelListEntry[] {
  const entries = new Map<string, { entry: Omit<ModelListEntry, "backends">; backends: Set<string> }>();
  for (const { backend, models } of lists) {
    for (const model of models) {
      const known = entries.get(model.id);
      if (known !== undefined) known.backends.add(backend.name);
      else entries.set(model.id, { entry: toListEntry(backend, model), backends: new Set([backend.name]) });
    }
  }
  return [...entries.values()].map(({ entry, backends }) => ({ ...entry, backends: [...backends] }));
}

/** The record under which a list has a requested model, whose name may lack or have Ollama's tag `:latest`. */
export function findRecord(models: readonly ListedModel[], id: string): ListedModel | undefined {
  return (
    models.find((model) => model.id === id) ??
    models.find((model) => model.id === `${id}:latest` || `${model.id}:latest` === id)
  );
}

export function ownerOf(backend: Backend, model: ListedModel | undefined): string {
  const { ownedBy, name } = model === undefined ? backend.kind : kindFor(backend.kind, model.id);
  return ownedBy ?? model?.ownedBy ?? name;
}

function toListEntry(backend: Backend, model: ListedModel): Omit<ModelListEntry, "backends"> {
  const { id, created } = model;
  return { id, object: "model", created, owned_by: ownerOf(backend, model), permission: [], root: id, parent: null };
}
