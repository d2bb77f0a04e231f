// The operations of the admin API for backends.

import { type AdminOperation, ifMatch, OF_A_CHANGE, OF_ADMIN, ofAdmin } from "./admin-operation.ts";
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
    parameters: [ifMatch],
    body: { schema: ref(BACKEND_SCHEMA), example: { name: "local", type: "ollama", url: "http://127.0.0.1:11434" } },
    answers: [answer("BackendChanged", "Added, and checked at once.")],
    errors: OF_A_CHANGE,
  },
  {
    method: "get",
    path: "/admin/backends/{name}",
    id: "getBackend",
    summary: "One backend",
    parameters: [backend],
    answers: [answer("BackendRecord", "The backend.")],
    errors: [...OF_ADMIN, 404],
  },
  {
    method: "put",
    path: "/admin/backends/{name}",
    id: "updateBackend",
    summary: "Change settings of a backend",
    parameters: [backend, ifMatch],
    body: { schema: ref("BackendChange"), example: { enabled: false } },
    answers: [answer("BackendChanged", "Changed.")],
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
      ifMatch,
    ],
    answers: [answer("BackendRemoved", "Removed.")],
    errors: [...OF_ADMIN, 400, 404, 409, 503],
  },
  {
    method: "put",
    path: "/admin/backends/{name}/weight",
    id: "setBackendWeight",
    summary: "Change the weight of a backend",
    parameters: [backend, ifMatch],
    body: { schema: ref("WeightRequest"), example: { weight: 2 } },
    answers: [answer("WeightChanged", "Changed.")],
    errors: [...OF_A_CHANGE, 404],
  },
  {
    method: "put",
    path: "/admin/backends/{name}/models",
    id: "setBackendModels",
    summary: "Change the models of a backend",
    parameters: [backend, ifMatch],
    body: { schema: ref("ModelsRequest"), example: { models: ["llama3.2"], append: true } },
    answers: [answer("ModelsChanged", "Changed.")],
    errors: [...OF_A_CHANGE, 404],
  },
];

export const BACKEND_OPERATIONS: readonly Operation[] = ofAdmin("Backends", PARTS);
