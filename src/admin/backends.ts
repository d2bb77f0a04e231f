// /admin/backends: one backend at a time; each change is a change of the section backends and makes one version.

import { mergePatch } from "../config/change/merge-patch.ts";
import { resolveAliases } from "../config/schema/section-patterns.ts";
import { type Mapping, valueAt } from "../config/values/values.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { ref } from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, pathParameter, queryParameter } from "../openapi/operation.ts";
import { BACKEND_SCHEMA } from "../openapi/section-schemas.ts";
import {
  BACKEND_SCHEMAS,
  BackendChange,
  BackendChanged,
  BackendRecord,
  BackendRemoved,
  BackendStatusList,
  CircuitReset,
  ModelsChanged,
  ModelsRequest,
  WeightChanged,
  WeightRequest,
} from "./backend-schemas.ts";
import { toRecord, toStatusList } from "./backend-view.ts";
import { answerChange, createCollection } from "./collection.ts";
import { adminGroup, answer, dryRun, versioned } from "./endpoint.ts";
import { requireRole } from "./missing-role.ts";
import type { AdminParts } from "./parts.ts";
import { queryOf, readFlag } from "./query.ts";
import { invalidFields, shortened } from "./refusals.ts";

type BackendParts = Pick<AdminParts, "store" | "clock" | "backendStates" | "backendUsage" | "resetCircuit">;

const endpoint = adminGroup("Backends", BACKEND_SCHEMAS);
const backendName = pathParameter("name", "Name of a backend.");
const force = queryParameter("force", "Also while requests are in flight; they finish.", {
  type: "boolean",
  default: false,
});

export function backendRoutes(parts: BackendParts): DescribedEndpoint[] {
  const { store } = parts;
  const backends = createCollection(store, {
    noun: "backend",
    place: "/admin/backends",
    idField: "name",
    fixedId: "cannot be changed; add a backend with the new name",
    path: ["backends"],
    read: readBackend,
    positionOf: (name, list) => list.findIndex((entry) => entry.name === name),
    shown: ({ done, list, position }) => recordOf(configured(done.current, list[position]?.name) ?? {}, parts),
    shownGone: (name) => configured(store.view({ sections: ["backends"] }), name),
  });
  return [
    endpoint("GET /admin/backends", {
      id: "listBackends",
      role: "viewer",
      summary: "State and counters of every backend",
      answers: [jsonAnswer(BackendStatusList, "The backends.")],
      handle: (call) => answer(call, toStatusList(parts.backendStates(), parts.clock.wallTime())),
    }),
    endpoint("POST /admin/backends", {
      id: "createBackend",
      role: "admin",
      summary: "Add a backend",
      parameters: [dryRun],
      body: {
        schema: ref(BACKEND_SCHEMA),
        isChecked: false,
        example: { name: "local", type: "ollama", url: "http://127.0.0.1:11434" },
      },
      changes: true,
      answers: [
        versioned(BackendChanged, "Added, and checked at once.", 201),
        versioned(BackendChanged, "What would be added."),
      ],
      async handle(call, read) {
        const entry = backends.read(await read());
        const { name = null } = entry.fields;
        if (typeof name !== "string") {
          throw invalidFields([{ field: "name", message: name === null ? "is required" : "expected a string" }]);
        }
        return await backends.create(call, entry);
      },
    }),
    endpoint("GET /admin/backends/{name}", {
      id: "getBackend",
      role: "viewer",
      summary: "One backend",
      parameters: [backendName],
      answers: [versioned(BackendRecord, "The backend.")],
      handle(call) {
        const { name } = call.parameters;
        const settings = configured(store.view({ sections: ["backends"] }), name);
        if (settings === undefined) throw backends.unknown(name);
        return answer(call, recordOf(settings, parts), { version: store.current.version });
      },
    }),
    endpoint("PUT /admin/backends/{name}", {
      id: "updateBackend",
      role: "operator",
      summary: "Change settings of a backend",
      description: "Fields other than enabled and weight need the role admin.",
      parameters: [backendName, dryRun],
      body: { schema: BackendChange, isChecked: false, example: { enabled: false } },
      changes: true,
      answers: [versioned(BackendChanged, "Changed.")],
      async handle(call, read) {
        const { name } = call.parameters;
        const change = backends.read(await read());
        if (Object.keys(change.fields).some((field) => !RUNNING_FIELDS.includes(field))) requireRole(call, "admin");
        return await backends.update(call, name, change, (entry) => {
          const changed = mergePatch(entry, change.fields) as Mapping;
          // The usual address of its type, which the record shows where none is written, means none when it comes back.
          if (entry.url === undefined && change.fields.url === recordOf({ name }, parts).url) delete changed.url;
          return changed;
        });
      },
    }),
    endpoint("DELETE /admin/backends/{name}", {
      id: "deleteBackend",
      role: "admin",
      summary: "Remove a backend",
      parameters: [backendName, force, dryRun],
      changes: true,
      answers: [versioned(BackendRemoved, "Removed.")],
      handle(call) {
        const { name } = call.parameters;
        const isForced = readFlag(queryOf(call), "force", false);
        return backends.remove(call, name, () => isForced || requireIdle(name, parts));
      },
    }),
    endpoint("POST /admin/backends/{name}/circuit/reset", {
      id: "resetCircuit",
      role: "operator",
      summary: "Close the circuit of a backend",
      description: "Requests go to the backend at once; what was counted against it is forgotten.",
      parameters: [backendName],
      answers: [jsonAnswer(CircuitReset, "It is closed.")],
      handle(call) {
        const { name } = call.parameters;
        if (stateOf(name, parts) === undefined) throw backends.unknown(name);
        const previous_state = parts.resetCircuit(name);
        const wasOpen = previous_state !== "closed";
        if (wasOpen) {
          const change = { section: "circuit", field: "state", from: previous_state, to: "closed" };
          call.deed = { subject: name, changes: [change] };
        }
        const message = wasOpen
          ? `The circuit of backend '${name}' was ${previous_state}, and is closed.`
          : `The circuit of backend '${name}' was closed already.`;
        return answer(call, { success: true, message, previous_state });
      },
    }),
    endpoint("PUT /admin/backends/{name}/weight", {
      id: "setBackendWeight",
      role: "operator",
      summary: "Change the weight of a backend",
      parameters: [backendName, dryRun],
      body: { schema: WeightRequest, example: { weight: 2 } },
      changes: true,
      answers: [versioned(WeightChanged, "Changed.")],
      async handle(call, read) {
        const { name } = call.parameters;
        const { weight, version } = await read();
        const description = `weight of backend ${shortened(name)}`;
        const { done } = await backends.change(call, name, { version, description }, (entry) => ({ ...entry, weight }));
        const weightIn = (view: Mapping) => configured(view, name)?.weight as number;
        return answerChange(call, done, `The weight of backend '${name}' was changed`, {
          previous_weight: weightIn(done.previous),
          new_weight: weightIn(done.current),
        });
      },
    }),
    endpoint("PUT /admin/backends/{name}/models", {
      id: "setBackendModels",
      role: "admin",
      summary: "Change the models of a backend",
      parameters: [backendName, dryRun],
      body: { schema: ModelsRequest, example: { models: ["llama3.2"], append: true } },
      changes: true,
      answers: [versioned(ModelsChanged, "Changed.")],
      async handle(call, read) {
        const { name } = call.parameters;
        const { models, append = false, version } = await read();
        const change = { version, description: `models of backend ${shortened(name)}` };
        const { done } = await backends.change(call, name, change, (entry) => ({
          ...entry,
          models: [...new Set(append ? [...knownModels(entry, parts), ...models] : models)],
        }));
        const now = (configured(done.current, name)?.models ?? []) as string[];
        return answerChange(call, done, `The models of backend '${name}' were changed`, { models: now });
      },
    }),
  ];
}

/** What operators change while a backend runs; the other fields are configuration. */
const RUNNING_FIELDS: readonly string[] = ["enabled", "weight"];

/** The settings with defaults filled in and secrets masked. */
function configured({ backends }: Mapping, name: unknown): Mapping | undefined {
  return Array.isArray(backends) ? (backends as Mapping[]).find((entry) => entry.name === name) : undefined;
}

/** The first backend of this name: one that drains under the same name comes later and is another one. */
function stateOf(name: unknown, { backendStates }: BackendParts) {
  const { configured, removed } = backendStates();
  return [...configured, ...removed].find(({ backend }) => backend.name === name);
}

function recordOf(settings: Mapping, parts: BackendParts) {
  return toRecord(settings, stateOf(settings.name, parts), parts.backendUsage(String(settings.name)));
}

/** The fields of a backend as a caller wrote them, with their usual spelling. */
function readBackend(written: Mapping): Mapping {
  const { document, problems } = resolveAliases({ backends: [written] });
  if (problems.length > 0) {
    throw invalidFields(problems.map(({ path, message }) => ({ field: path.slice(2).join("."), message })));
  }
  return valueAt(document, ["backends", 0]) as Mapping;
}

function requireIdle(name: string, parts: BackendParts): void {
  const inFlight = stateOf(name, parts)?.counters.inFlight ?? 0;
  if (inFlight === 0) return;
  const requests = inFlight === 1 ? "1 request is" : `${inFlight} requests are`;
  const message = `${requests} in flight at backend '${name}'; with ?force=true it gets no new ones and finishes those.`;
  throw new GatewayError(ERRORS.conflict, message, { details: { in_flight: inFlight } });
}

/** Appending to models that the backend names itself must not take those away. */
function knownModels(entry: Mapping, parts: BackendParts): readonly unknown[] {
  if (Array.isArray(entry.models) && entry.models.length > 0) return entry.models;
  return stateOf(entry.name, parts)?.models ?? [];
}
