// The operations of the admin API for API keys.

import { type AdminOperation, dryRun, ifMatch, OF_A_CHANGE, OF_ADMIN, ofAdmin, versioned } from "./admin-operation.ts";
import { ref } from "./json-schema.ts";
import { type Operation, pathParameter } from "./operation.ts";

const key = pathParameter("id", "Id of a key.");

const PARTS: readonly AdminOperation[] = [
  {
    method: "get",
    path: "/admin/keys",
    id: "listKeys",
    summary: "Every API key, without its secret",
    answers: [versioned("KeyList", "The keys.")],
    errors: OF_ADMIN,
  },
  {
    method: "post",
    path: "/admin/keys",
    id: "createKey",
    summary: "Add a key; without a secret one is made",
    parameters: [dryRun, ifMatch],
    body: { schema: ref("KeyChange"), example: { id: "team-b", scopes: ["read", "write"], models: ["gpt-*"] } },
    answers: [versioned("KeyChanged", "Added.", 201), versioned("KeyChanged", "What would be added.")],
    errors: OF_A_CHANGE,
  },
  {
    method: "get",
    path: "/admin/keys/{id}",
    id: "getKey",
    summary: "One key",
    parameters: [key],
    answers: [versioned("KeyRecord", "The key.")],
    errors: [...OF_ADMIN, 404],
  },
  {
    method: "put",
    path: "/admin/keys/{id}",
    id: "updateKey",
    summary: "Change a key",
    parameters: [key, dryRun, ifMatch],
    body: { schema: ref("KeyChange"), example: { enabled: false } },
    answers: [versioned("KeyChanged", "Changed.")],
    errors: [...OF_A_CHANGE, 404],
  },
  {
    method: "delete",
    path: "/admin/keys/{id}",
    id: "deleteKey",
    summary: "Remove a key, with all that it owns",
    parameters: [key, dryRun, ifMatch],
    answers: [versioned("KeyRemoved", "Removed.")],
    errors: [...OF_ADMIN, 400, 404, 409, 503],
  },
  {
    method: "post",
    path: "/admin/keys/{id}/rotate",
    id: "rotateKey",
    summary: "Give a key a new secret, while the old one stays valid for a time",
    parameters: [key, dryRun, ifMatch],
    body: { schema: ref("KeyRotation"), example: { overlap: "1h" }, optional: true },
    answers: [versioned("KeyChanged", "The new secret is valid.")],
    errors: [...OF_A_CHANGE, 404],
  },
];

export const KEY_OPERATIONS: readonly Operation[] = ofAdmin("Keys", PARTS);
