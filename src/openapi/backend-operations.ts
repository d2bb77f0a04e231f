// The operations of the admin API for backends.

import { type AdminOperation, dryRun, ifMatch, OF_A_CHANGE, OF_ADMIN, ofAdmin, versioned } from "./admin-operation.ts";
import { ref } from "./json-schema.ts";
import { answer, type Operation, pathParameter, queryParameter } from "./operation.ts";
import { BACKEND_SCHEMA } from "./section-schemas.ts";

const backend = pathParameter("name", "Name of a backend.");

const PARTS: readonly AdminOperation[] = [
  {
    method: "get",
    path: "/admin/backends",
    id: "listBackends",
    summary: "State and counters of every backend",
    answers: [answer("BackendStatusList", "The backends.")],
    errors: OF_ADMIN,
  },
  {
    method: "post",
    path: "/admin/backends",
    id: "createBackend",
    summary: "Add a backend",
    parameters: [dryRun, ifMatch],
    body: { schema: ref(BACKEND_SCHEMA), example: { name: "local", type: "ollama", url: "http://127.0.0.1:11434" } },
    answers: [
      versioned("BackendChanged", "Added, and checked at once.", 201),
      versioned("BackendChanged", "What would be added."),
    ],
    errors: OF_A_CHANGE,
  },
  {
    method: "get",
    path: "/admin/backends/{name}",
    id: "getBackend",
    summary: "One backend",
    parameters: [backend],
    answers: [versioned("BackendRecord", "The backend.")],
    errors: [...OF_ADMIN, 404],
  },
  {
    method: "put",
    path: "/admin/backends/{name}",
    id: "updateBackend",
    summary: "Change settings of a backend",
    parameters: [backend, dryRun, ifMatch],
    body: { schema: ref("BackendChange"), example: { enabled: false } },
    answers: [versioned("BackendChanged", "Changed.")],
    errors: [...OF_A_CHANGE, 404],
  },
  {
    method: "delete",
    path: "/admin/backends/{name}",
    id: "deleteBackend",
    summary: "Remove a backend",
    parameters: [
      backend,
      queryParameter("force", "Also while requests are in flight; they finish.", { type: "boolean", default: false }),
      dryRun,
      ifMatch,
    ],
    answers: [versioned("BackendRemoved", "Removed.")],
    errors: [...OF_ADMIN, 404, 409, 503],
  },
  {
    method: "put",
    path: "/admin/backends/{name}/weight",
    id: "setBackendWeight",
    summary: "Change the weight of a backend",
    parameters: [backend, dryRun, ifMatch],
    body: { schema: ref("WeightRequest"), example: { weight: 2 } },
    answers: [versioned("WeightChanged", "Changed.")],
    errors: [...OF_A_CHANGE, 404],
  },
  {
    method: "put",
    path: "/admin/backends/{name}/models",
    id: "setBackendModels",
    summary: "Change the models of a backend",
    parameters: [backend, dryRun, ifMatch],
    body: { schema: ref("ModelsRequest"), example: { models: ["llama3.2"], append: true } },
    answers: [versioned("ModelsChanged", "Changed.")],
    errors: [...OF_A_CHANGE, 404],
  },
];

export const BACKEND_OPERATIONS: readonly Operation[] = ofAdmin("Backends", PARTS);
