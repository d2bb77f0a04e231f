// /admin/backends: one backend at a time; each change is a change of the section backends and makes one version.

import { z } from "zod";
import type { Change } from "../config/change/change.ts";
import { mergePatch } from "../config/change/merge-patch.ts";
import { resolveAliases } from "../config/schema/section-patterns.ts";
import { isMapping, type Mapping, valueAt } from "../config/values/values.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Call, Endpoint } from "../server/endpoint.ts";
import { type BackendRow, type BackendUsage, toRecord } from "./backend-record.ts";
import { changeFrame } from "./config-write.ts";
import { adminRoute, answer, authorOf, type StoreOf } from "./endpoint.ts";
import { invalidFields, shortened, unwrap } from "./refusals.ts";
import {
  type BodyParts,
  baseVersionOf,
  bodyIsMissing,
  isDryRun,
  notAnObject,
  queryOf,
  readBody,
  readFields,
  readFlag,
  readVersion,
} from "./request.ts";

export interface BackendParts extends BodyParts {
  store: StoreOf<"current" | "view" | "edit">;
  /** The body of GET /admin/backends; behind the configured backends stand those that drain. */
  backendStatus(): { backends: readonly BackendRow[] };
  /** What the statistics know of a backend; undefined for one that had no request. */
  backendUsage?(name: string): BackendUsage | undefined;
}

export function backendRoutes(parts: BackendParts): Endpoint[] {
  return [
    adminRoute("GET", "/admin/backends", (call) => answer(call, parts.backendStatus())),
    adminRoute("POST", "/admin/backends", (call) => create(call, parts), ["dry_run"]),
    adminRoute("GET", "/admin/backends/{name}", (call) => read(call, parts)),
    adminRoute("PUT", "/admin/backends/{name}", (call) => update(call, parts), ["dry_run"]),
    adminRoute("DELETE", "/admin/backends/{name}", (call) => remove(call, parts), ["force", "dry_run"]),
    adminRoute("PUT", "/admin/backends/{name}/weight", (call) => setWeight(call, parts), ["dry_run"]),
    adminRoute("PUT", "/admin/backends/{name}/models", (call) => setModels(call, parts), ["dry_run"]),
  ];
}

type NamedCall = Call<"name">;

function noSuchBackend(name: string): GatewayError {
  const message = `There is no backend '${shortened(name)}'; GET /admin/backends lists them.`;
  return new GatewayError(ERRORS.routeNotFound, message, { param: "name" });
}

/** The backends of a document, as they are written. */
function entriesOf(document: Mapping): Mapping[] {
  return Array.isArray(document.backends) ? (document.backends as Mapping[]) : [];
}

function find(list: readonly Mapping[], name: string): Mapping {
  const found = list.find((entry) => entry.name === name);
  if (found === undefined) throw noSuchBackend(name);
  return found;
}

/** As it is configured, defaults filled in and secrets masked. */
function configured(view: Mapping, name: string): Mapping | undefined {
  return entriesOf(view).find((entry) => entry.name === name);
}

function recordOf(settings: Mapping, { backendStatus, backendUsage }: BackendParts) {
  // One that drains under the same name is another one.
  const row = backendStatus().backends.find(({ name }) => name === settings.name);
  return toRecord(settings, row, backendUsage?.(String(settings.name)));
}

function read(call: NamedCall, parts: BackendParts): Response {
  const { name } = call.parameters;
  const settings = configured(parts.store.view({ sections: ["backends"] }), name);
  if (settings === undefined) throw noSuchBackend(name);
  return answer(call, recordOf(settings, parts), { version: parts.store.current.version });
}

interface ListChange {
  /** The version that it was made for, from the body. */
  version: number | undefined;
  description: string;
  /** The new list; throws where that cannot be. */
  make(list: readonly Mapping[]): Mapping[];
  /** The backend that the caller speaks of: problems of it are told by its own fields. */
  name: string;
}

async function changeList(call: Call, { store }: BackendParts, change: ListChange): Promise<Change> {
  let position = -1;
  const result = await store.edit((document) => {
    const list = change.make(entriesOf(document));
    position = list.findIndex(({ name }) => name === change.name);
    return {
      sections: { backends: list },
      mode: "replace",
      baseVersion: baseVersionOf(call, change.version, store.current.version),
      dryRun: isDryRun(queryOf(call)),
      ...authorOf(call, "api", change.description),
    };
  });
  const own = `backends[${position}].`;
  return unwrap(result, { fieldOf: (field) => (field.startsWith(own) ? field.slice(own.length) : field) });
}

/** One entry in place of the one with its name. */
function changeEntry(
  call: Call,
  parts: BackendParts,
  change: Omit<ListChange, "make"> & { make(entry: Mapping): Mapping },
): Promise<Change> {
  return changeList(call, parts, {
    ...change,
    make(list) {
      const entry = find(list, change.name);
      return list.map((other) => (other === entry ? change.make(entry) : other));
    },
  });
}

/** The fields of a backend as a caller wrote them, with their usual spelling. */
async function readBackend(call: Call, parts: BackendParts): Promise<{ fields: Mapping; version: number | undefined }> {
  const body = await readBody(call, parts);
  if (body === undefined) throw bodyIsMissing();
  if (!isMapping(body)) throw notAnObject();
  const { version, ...written } = body;
  const { document, problems } = resolveAliases({ backends: [written] });
  if (problems.length > 0) {
    throw invalidFields(problems.map(({ path, message }) => ({ field: path.slice(2).join("."), message })));
  }
  return { fields: valueAt(document, ["backends", 0]) as Mapping, version: readVersion(version) };
}

async function create(call: Call, parts: BackendParts): Promise<Response> {
  const { fields, version } = await readBackend(call, parts);
  const { name } = fields;
  if (typeof name !== "string") {
    const message = name === undefined || name === null ? "is required" : "expected a string";
    throw invalidFields([{ field: "name", message }]);
  }
  // Null stands for a field that is left out, as it does in a merge patch.
  const entry = mergePatch({}, fields) as Mapping;
  const done = await changeList(call, parts, {
    name,
    version,
    description: `backend ${shortened(name)} added`,
    make(list) {
      if (list.some((other) => other.name === name)) {
        const message = `There is a backend '${shortened(name)}' already; PUT /admin/backends/{name} changes it.`;
        throw new GatewayError(ERRORS.conflict, message, { param: "name" });
      }
      return [...list, entry];
    },
  });
  const dryRun = isDryRun(queryOf(call));
  return answerRecord(call, parts, done, name, `Backend '${name}' was added`, dryRun ? 200 : 201);
}

async function update(call: NamedCall, parts: BackendParts): Promise<Response> {
  const { name } = call.parameters;
  const { fields, version } = await readBackend(call, parts);
  if (fields.name !== undefined && fields.name !== name) {
    throw invalidFields([{ field: "name", message: "cannot be changed; add a backend with the new name" }]);
  }
  const done = await changeEntry(call, parts, {
    name,
    version,
    description: `backend ${shortened(name)} changed`,
    make(entry) {
      const changed = mergePatch(entry, fields) as Mapping;
      // The usual address of its type, which the record shows where none is written, means none when it comes back.
      if (entry.url === undefined && fields.url === recordOf({ name }, parts).url) delete changed.url;
      return changed;
    },
  });
  return answerRecord(call, parts, done, name, `Backend '${name}' was changed`, 200);
}

function answerRecord(
  call: Call,
  parts: BackendParts,
  done: Change,
  name: string,
  what: string,
  status: number,
): Response {
  const body = {
    ...changeFrame(call, done, what),
    backend: recordOf(configured(done.current, name) ?? { name }, parts),
  };
  return answer(call, body, { status, version: done.version });
}

async function remove(call: NamedCall, parts: BackendParts): Promise<Response> {
  const { name } = call.parameters;
  const force = readFlag(queryOf(call), "force", false);
  const record = configured(parts.store.view({ sections: ["backends"] }), name);
  const done = await changeList(call, parts, {
    name,
    version: undefined,
    description: `backend ${shortened(name)} removed`,
    make(list) {
      const entry = find(list, name);
      const inFlight = force ? 0 : requestsInFlight(parts, name);
      if (inFlight > 0) {
        const requests = inFlight === 1 ? "1 request is" : `${inFlight} requests are`;
        const message = `${requests} in flight at backend '${name}'; with ?force=true it gets no new ones and finishes those.`;
        throw new GatewayError(ERRORS.conflict, message, { details: { in_flight: inFlight } });
      }
      return list.filter((other) => other !== entry);
    },
  });
  const removed = configured(done.previous, name) ?? record ?? { name };
  const body = { ...changeFrame(call, done, `Backend '${name}' was removed`), removed_backend: removed };
  return answer(call, body, { version: done.version });
}

function requestsInFlight({ backendStatus }: BackendParts, name: string): number {
  const row = backendStatus().backends.find((candidate) => candidate.name === name);
  return row?.in_flight ?? 0;
}

const version = z.int().min(0).optional();

// What a weight and a model may be says the section's own schema.
const weightRequest = z.strictObject({ weight: z.number(), version });
const modelsRequest = z.strictObject({ models: z.array(z.unknown()), append: z.boolean().default(false), version });

async function setWeight(call: NamedCall, parts: BackendParts): Promise<Response> {
  const { name } = call.parameters;
  const { weight, version } = await readFields(weightRequest, call, parts);
  const done = await changeEntry(call, parts, {
    name,
    version,
    description: `weight of backend ${shortened(name)}`,
    make: (entry) => ({ ...entry, weight }),
  });
  const body = {
    ...changeFrame(call, done, `The weight of backend '${name}' was changed`),
    previous_weight: configured(done.previous, name)?.weight,
    new_weight: configured(done.current, name)?.weight,
  };
  return answer(call, body, { version: done.version });
}

async function setModels(call: NamedCall, parts: BackendParts): Promise<Response> {
  const { name } = call.parameters;
  const { models, append, version } = await readFields(modelsRequest, call, parts);
  const done = await changeEntry(call, parts, {
    name,
    version,
    description: `models of backend ${shortened(name)}`,
    make: (entry) => ({ ...entry, models: [...new Set(append ? [...knownModels(entry, parts), ...models] : models)] }),
  });
  const body = {
    ...changeFrame(call, done, `The models of backend '${name}' were changed`),
    models: configured(done.current, name)?.models ?? [],
  };
  return answer(call, body, { version: done.version });
}

/** Appending to models that the backend names itself must not take those away. */
function knownModels(entry: Mapping, { backendStatus }: BackendParts): readonly unknown[] {
  if (Array.isArray(entry.models) && entry.models.length > 0) return entry.models;
  return backendStatus().backends.find(({ name }) => name === entry.name)?.models ?? [];
}
