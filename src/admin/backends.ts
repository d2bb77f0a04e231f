// /admin/backends: one backend at a time; each change is a change of the section backends and makes one version.

import { z } from "zod";
import type { Change } from "../config/change/change.ts";
import { mergePatch } from "../config/change/merge-patch.ts";
import { resolveAliases } from "../config/schema/section-patterns.ts";
import { type Mapping, valueAt } from "../config/values/values.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { ref } from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, pathParameter, queryParameter } from "../openapi/operation.ts";
import { BACKEND_SCHEMA } from "../openapi/section-schemas.ts";
import type { Call } from "../server/endpoint.ts";
import { toRecord } from "./backend-record.ts";
import { BACKEND_SCHEMAS } from "./backend-schemas.ts";
import { adminGroup, answer, dryRun, versioned } from "./endpoint.ts";
import {
  added,
  answerChange,
  changeEntries,
  type Entry,
  type EntryChange,
  readEntry,
  removed,
  replaced,
  type Told,
} from "./entries.ts";
import type { AdminParts } from "./parts.ts";
import { invalidFields, shortened } from "./refusals.ts";
import { queryOf, readFlag } from "./request.ts";

type BackendParts = Pick<AdminParts, "store" | "backendStatus" | "backendUsage" | "resetCircuit">;

const version = z.int().min(0).optional();

// What a weight and a model may be says the section's own schema.
const weightRequest = z.strictObject({ weight: z.number(), version });
const modelsRequest = z.strictObject({ models: z.array(z.unknown()), append: z.boolean().default(false), version });

const endpoint = adminGroup("Backends", BACKEND_SCHEMAS);
const backendName = pathParameter("name", "Name of a backend.");
const force = queryParameter("force", "Also while requests are in flight; they finish.", {
  type: "boolean",
  default: false,
});

export function backendRoutes(parts: BackendParts): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/backends", {
      id: "listBackends",
      summary: "State and counters of every backend",
      answers: [jsonAnswer("BackendStatusList", "The backends.")],
      handle: (call) => answer(call, parts.backendStatus()),
    }),
    endpoint("POST /admin/backends", {
      id: "createBackend",
      summary: "Add a backend",
      parameters: [dryRun],
      body: { schema: ref(BACKEND_SCHEMA), example: { name: "local", type: "ollama", url: "http://127.0.0.1:11434" } },
      changes: true,
      answers: [
        versioned("BackendChanged", "Added, and checked at once.", 201),
        versioned("BackendChanged", "What would be added."),
      ],
      handle: async (call, read) => await create(call, readBackend(await read()), parts),
    }),
    endpoint("GET /admin/backends/{name}", {
      id: "getBackend",
      summary: "One backend",
      parameters: [backendName],
      answers: [versioned("BackendRecord", "The backend.")],
      handle(call) {
        const { name } = call.parameters;
        const settings = configured(parts.store.view({ sections: ["backends"] }), name);
        if (settings === undefined) throw noSuchBackend(name);
        return answer(call, recordOf(settings, parts), { version: parts.store.current.version });
      },
    }),
    endpoint("PUT /admin/backends/{name}", {
      id: "updateBackend",
      summary: "Change settings of a backend",
      parameters: [backendName, dryRun],
      body: { schema: ref("BackendChange"), example: { enabled: false } },
      changes: true,
      answers: [versioned("BackendChanged", "Changed.")],
      handle: async (call, read) => await update(call, readBackend(await read()), parts),
    }),
    endpoint("DELETE /admin/backends/{name}", {
      id: "deleteBackend",
      summary: "Remove a backend",
      parameters: [backendName, force, dryRun],
      changes: true,
      answers: [versioned("BackendRemoved", "Removed.")],
      handle: (call) => remove(call, parts),
    }),
    ...actionRoutes(parts),
  ];
}

function actionRoutes(parts: BackendParts): DescribedEndpoint[] {
  return [
    endpoint("POST /admin/backends/{name}/circuit/reset", {
      id: "resetCircuit",
      summary: "Close the circuit of a backend",
      description: "Requests go to the backend at once; what was counted against it is forgotten.",
      parameters: [backendName],
      answers: [jsonAnswer("CircuitReset", "It is closed.")],
      handle(call) {
        const { name } = call.parameters;
        if (rowOf(name, parts) === undefined) throw noSuchBackend(name);
        const previous_state = parts.resetCircuit(name);
        const wasOpen = previous_state !== "closed";
        const message = wasOpen
          ? `The circuit of backend '${name}' was ${previous_state}, and is closed.`
          : `The circuit of backend '${name}' was closed already.`;
        return answer(call, { success: true, message, previous_state });
      },
    }),
    endpoint("PUT /admin/backends/{name}/weight", {
      id: "setBackendWeight",
      summary: "Change the weight of a backend",
      parameters: [backendName, dryRun],
      body: { schema: ref("WeightRequest"), fields: weightRequest, example: { weight: 2 } },
      changes: true,
      answers: [versioned("WeightChanged", "Changed.")],
      async handle(call, read) {
        const { name } = call.parameters;
        const { weight, version } = await read();
        const done = await change(call, parts, {
          version,
          description: `weight of backend ${shortened(name)}`,
          edit: replaced(positionOf(name), (entry) => ({ ...entry, weight })),
        });
        const previous_weight = configured(done.previous, name)?.weight;
        const new_weight = configured(done.current, name)?.weight;
        const what = `The weight of backend '${name}' was changed`;
        return answerChange(call, done, { what }, { previous_weight, new_weight });
      },
    }),
    endpoint("PUT /admin/backends/{name}/models", {
      id: "setBackendModels",
      summary: "Change the models of a backend",
      parameters: [backendName, dryRun],
      body: {
        schema: ref("ModelsRequest"),
        fields: modelsRequest,
        example: { models: ["llama3.2"], append: true },
      },
      changes: true,
      answers: [versioned("ModelsChanged", "Changed.")],
      async handle(call, read) {
        const { name } = call.parameters;
        const { models, append, version } = await read();
        const done = await change(call, parts, {
          version,
          description: `models of backend ${shortened(name)}`,
          edit: replaced(positionOf(name), (entry) => ({
            ...entry,
            models: [...new Set(append ? [...knownModels(entry, parts), ...models] : models)],
          })),
        });
        const what = `The models of backend '${name}' were changed`;
        return answerChange(call, done, { what }, { models: configured(done.current, name)?.models ?? [] });
      },
    }),
  ];
}

function noSuchBackend(name: string): GatewayError {
  const message = `There is no backend '${shortened(name)}'; GET /admin/backends lists them.`;
  return new GatewayError(ERRORS.routeNotFound, message, { param: "name" });
}

/** Where the backend with this name stands in the list of the configuration. */
const positionOf =
  (name: string) =>
  (list: readonly Mapping[]): number => {
    const position = list.findIndex((entry) => entry.name === name);
    if (position === -1) throw noSuchBackend(name);
    return position;
  };

/** As it is configured, defaults filled in and secrets masked. */
function configured({ backends }: Mapping, name: string): Mapping | undefined {
  return Array.isArray(backends) ? (backends as Mapping[]).find((entry) => entry.name === name) : undefined;
}

/** What runs under this name; the first, as one that drains under the same name is another one. */
function rowOf(name: unknown, { backendStatus }: BackendParts) {
  return backendStatus().backends.find((row) => row.name === name);
}

function recordOf(settings: Mapping, parts: BackendParts) {
  return toRecord(settings, rowOf(settings.name, parts), parts.backendUsage(String(settings.name)));
}

function change(call: Call, { store }: BackendParts, made: Omit<EntryChange, "path">): Promise<Change> {
  return changeEntries(call, store, { ...made, path: ["backends"] });
}

/** The fields of a backend as a caller wrote them, with their usual spelling. */
function readBackend(body: unknown): Entry {
  return readEntry(body, (written) => {
    const { document, problems } = resolveAliases({ backends: [written] });
    if (problems.length > 0) {
      throw invalidFields(problems.map(({ path, message }) => ({ field: path.slice(2).join("."), message })));
    }
    return valueAt(document, ["backends", 0]) as Mapping;
  });
}

async function create(call: Call, { fields, version }: Entry, parts: BackendParts): Promise<Response> {
  const { name } = fields;
  if (typeof name !== "string") {
    const message = name === undefined || name === null ? "is required" : "expected a string";
    throw invalidFields([{ field: "name", message }]);
  }
  // Null stands for a field that is left out, as it does in a merge patch.
  const entry = mergePatch({}, fields) as Mapping;
  const done = await change(call, parts, {
    version,
    description: `backend ${shortened(name)} added`,
    edit(list) {
      if (list.some((other) => other.name === name)) {
        const message = `There is a backend '${shortened(name)}' already; PUT /admin/backends/{name} changes it.`;
        throw new GatewayError(ERRORS.conflict, message, { param: "name" });
      }
      return added(entry)(list);
    },
  });
  return answerRecord(call, parts, done, name, { what: `Backend '${name}' was added`, status: 201 });
}

async function update(call: Call<"name">, { fields, version }: Entry, parts: BackendParts): Promise<Response> {
  const { name } = call.parameters;
  if (fields.name !== undefined && fields.name !== name) {
    throw invalidFields([{ field: "name", message: "cannot be changed; add a backend with the new name" }]);
  }
  const done = await change(call, parts, {
    version,
    description: `backend ${shortened(name)} changed`,
    edit: replaced(positionOf(name), (entry) => {
      const changed = mergePatch(entry, fields) as Mapping;
      // The usual address of its type, which the record shows where none is written, means none when it comes back.
      if (entry.url === undefined && fields.url === recordOf({ name }, parts).url) delete changed.url;
      return changed;
    }),
  });
  return answerRecord(call, parts, done, name, { what: `Backend '${name}' was changed` });
}

function answerRecord(call: Call, parts: BackendParts, done: Change, name: string, told: Told): Response {
  return answerChange(call, done, told, { backend: recordOf(configured(done.current, name) ?? { name }, parts) });
}

async function remove(call: Call<"name">, parts: BackendParts): Promise<Response> {
  const { name } = call.parameters;
  const isForced = readFlag(queryOf(call), "force", false);
  const record = configured(parts.store.view({ sections: ["backends"] }), name);
  const done = await change(call, parts, {
    version: undefined,
    description: `backend ${shortened(name)} removed`,
    edit: removed((list) => {
      const position = positionOf(name)(list);
      const inFlight = isForced ? 0 : (rowOf(name, parts)?.in_flight ?? 0);
      if (inFlight > 0) {
        const requests = inFlight === 1 ? "1 request is" : `${inFlight} requests are`;
        const message = `${requests} in flight at backend '${name}'; with ?force=true it gets no new ones and finishes those.`;
        throw new GatewayError(ERRORS.conflict, message, { details: { in_flight: inFlight } });
      }
      return position;
    }),
  });
  const removed_backend = configured(done.previous, name) ?? record ?? { name };
  return answerChange(call, done, { what: `Backend '${name}' was removed` }, { removed_backend });
}

/** Appending to models that the backend names itself must not take those away. */
function knownModels(entry: Mapping, parts: BackendParts): readonly unknown[] {
  if (Array.isArray(entry.models) && entry.models.length > 0) return entry.models;
  return rowOf(entry.name, parts)?.models ?? [];
}
