// GET /v1/models and GET /v1/models/{model}.

import { requireModel } from "../access/api-keys.ts";
import type { Caller } from "../access/caller.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { ServingFleet } from "../fleet/fleet.ts";
import type { FoundModel } from "../models/list.ts";
import type { createListEnricher, ModelMetadataSource } from "../models/metadata.ts";
import { type ModelFields, toModelFields } from "../models/metadata-lookup.ts";
import { type DescribedEndpoint, jsonAnswer, pathParameter } from "../openapi/operation.ts";
import { unknownModelError } from "../routing/no-backend.ts";

export interface ModelParts {
  fleet: Pick<ServingFleet, "board" | "models">;
  metadata: ModelMetadataSource;
  toShownList: ReturnType<typeof createListEnricher>;
}

/** Those that the caller's key may use. */
export async function allowedModels({ fleet, toShownList }: ModelParts, caller: Caller | undefined) {
  const all = toShownList(await fleet.models.list());
  const { allowsModel } = caller ?? {};
  return allowsModel === undefined ? all : all.filter(({ id }) => allowsModel(id));
}

/** Statuses of errors of the endpoints that list models. */
export const OF_A_READER = [401, 403, 429, 500] as const;
export const modelParameter = pathParameter("model", "Id of a model; it may contain slashes.");

export function modelRoutes(models: ModelParts): DescribedEndpoint[] {
  return [
    {
      method: "GET",
      path: "/v1/models",
      id: "listModels",
      tag: "Models",
      access: "read",
      summary: "Models of all available backends",
      answers: [jsonAnswer("ModelList", "The models.")],
      errors: [...OF_A_READER, 503],
      async handle({ context, headers }) {
        const data = await allowedModels(models, context.caller);
        const { entries } = models.fleet.board;
        if (entries.some(({ backend }) => backend.enabled) && !entries.some(({ available }) => available)) {
          throw new GatewayError(
            ERRORS.allBackendsUnhealthy,
            "No backend is healthy at the moment. GET /admin/backends shows why.",
          );
        }
        return Response.json({ object: "list", data }, { headers });
      },
    },
    {
      method: "GET",
      path: "/v1/models/{model...}",
      id: "getModel",
      tag: "Models",
      access: "read",
      summary: "One model, also one that is not available now",
      parameters: [modelParameter],
      answers: [jsonAnswer("Model", "The model.")],
      errors: [...OF_A_READER, 400, 404],
      async handle({ parameters: { model = "" }, context, headers }) {
        const found = await findAllowed(models, model, context.caller);
        const { id, created, owned_by, available } = found;
        return Response.json(
          { id, object: "model", created, owned_by, available, ...modelFields(models, found) },
          { headers },
        );
      },
    },
  ];
}

/** Optional fields of a single model, from metadata; what its backends say of it themselves comes first. */
export function modelFields({ metadata }: ModelParts, { id, backends }: FoundModel): ModelFields {
  return toModelFields(metadata.ofAny(id, backends) ?? {});
}

/** Throws 403 for a model that the caller's key may not use, and 404 for one that there is not. */
export async function findAllowed(models: ModelParts, model: string, caller: Caller | undefined): Promise<FoundModel> {
  requireModel(caller, model);
  const found = await models.fleet.models.find(model);
  if (found === undefined) throw await unknownModel(models, model, caller);
  return found;
}

/** Names the nearest model that the caller's key may use. */
export async function unknownModel(
  models: ModelParts,
  model: string,
  caller: Caller | undefined,
): Promise<GatewayError> {
  const known = await allowedModels(models, caller);
  return unknownModelError(
    model,
    known.map(({ id }) => id),
  );
}
