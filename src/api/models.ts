// GET /v1/models and GET /v1/models/{model}.

import { type Caller, requireModel } from "../access/api-keys.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { FoundModel } from "../models/list.ts";
import type { EnrichedEntry, PlainEntry } from "../models/metadata.ts";
import type { ModelFields } from "../models/metadata-lookup.ts";
import { unknownModelError } from "../routing/no-backend.ts";
import type { Answering } from "../server/endpoint.ts";

/** Where the models of all backends are looked up. */
export interface ModelDirectory {
  listModels(): Promise<readonly (EnrichedEntry | PlainEntry)[]>;
  findModel(id: string): Promise<FoundModel | undefined>;
  /** Every backend is unhealthy, and there is at least one. */
  allUnhealthy(): boolean;
  /** Optional fields of a single model, from metadata; what its backends say of it themselves comes first. */
  modelFields(model: { id: string; backends?: readonly string[] }): ModelFields;
}

/** Those that the caller's key may use. */
export async function allowedModels(models: ModelDirectory, caller: Caller | undefined) {
  const all = await models.listModels();
  const { allowsModel } = caller ?? {};
  return allowsModel === undefined ? all : all.filter(({ id }) => allowsModel(id));
}

export function modelListEndpoint(models: ModelDirectory): Answering {
  return {
    access: "read",
    async handle({ context, headers }) {
      const data = await allowedModels(models, context.caller);
      if (models.allUnhealthy()) {
        throw new GatewayError(
          ERRORS.allBackendsUnhealthy,
          "No backend is healthy at the moment. GET /admin/backends shows why.",
        );
      }
      return Response.json({ object: "list", data }, { headers });
    },
  };
}

export function modelEndpoint(models: ModelDirectory): Answering {
  return {
    access: "read",
    async handle({ parameters, context, headers }) {
      const { model = "" } = parameters;
      requireModel(context.caller, model);
      const found = await models.findModel(model);
      if (found === undefined) throw await unknownModel(models, model, context.caller);
      const { id, created, owned_by, available } = found;
      return Response.json(
        { id, object: "model", created, owned_by, available, ...models.modelFields(found) },
        { headers },
      );
    },
  };
}

/** Names the nearest model that the caller's key may use. */
export async function unknownModel(
  models: ModelDirectory,
  model: string,
  caller: Caller | undefined,
): Promise<GatewayError> {
  const known = await allowedModels(models, caller);
  return unknownModelError(
    model,
    known.map(({ id }) => id),
  );
}
