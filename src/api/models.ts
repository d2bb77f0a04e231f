// GET /v1/models and GET /v1/models/{model}.

import type { Caller } from "../access/caller.ts";
import type { ModelMetadata } from "../config/sections/metadata-entry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { ServingFleet } from "../fleet/fleet.ts";
import type { FoundModel, ModelListEntry } from "../models/list.ts";
import type { createListEnricher, ModelMetadataSource } from "../models/metadata.ts";
import { type ModelFields, toModelFields } from "../models/metadata-lookup.ts";
import { SERVICE_NAME } from "../names.ts";
import { type DescribedEndpoint, jsonAnswer, pathParameter } from "../openapi/operation.ts";
import type { ModelNames } from "../pipeline/routes.ts";
import { unknownModelError } from "../routing/no-backend.ts";

export interface ModelParts {
  fleet: Pick<ServingFleet, "board" | "models">;
  metadata: ModelMetadataSource;
  toShownList: ReturnType<typeof createListEnricher>;
  names: Pick<ModelNames, "requireAllowed" | "modelsBehind" | "isRoute" | "routes">;
}

/** Those that the caller's key may use. */
export async function allowedModels({ fleet, toShownList, names }: ModelParts, caller: Caller | undefined) {
  const all = withRoutes(toShownList(await fleet.models.list()), names);
  const { allowsModel } = caller ?? {};
  return allowsModel === undefined ? all : all.filter(({ id }) => allowsModel(id));
}

/** A route is listed while one of its models is: with the facts of the first one. */
function withRoutes<Entry extends Pick<ModelListEntry, "id" | "owned_by" | "root">>(
  list: readonly Entry[],
  { routes, modelsBehind }: ModelParts["names"],
): readonly Entry[] {
  if (routes.length === 0) return list;
  const byId = new Map(list.map((entry) => [entry.id, entry]));
  const listed = routes.flatMap((id) => {
    const first = modelsBehind(id)
      .map((model) => byId.get(model))
      .find((entry) => entry !== undefined);
    return first === undefined ? [] : [{ ...first, id, root: id, owned_by: SERVICE_NAME }];
  });
  return [...listed, ...list.filter(({ id }) => !routes.includes(id))];
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

/** Of a route that of its first model; what its backends say of a model themselves comes first. */
export function metadataOf({ metadata, names }: ModelParts, { id, backends }: FoundModel): ModelMetadata | undefined {
  const [first = id] = names.modelsBehind(id);
  return metadata.ofAny(first, backends);
}

/** Optional fields of a single model, from metadata. */
export function modelFields(models: ModelParts, found: FoundModel): ModelFields {
  return toModelFields(metadataOf(models, found) ?? {});
}

/** Throws 403 for a model that the caller's key may not use, and 404 for one that there is not. */
export async function findAllowed(models: ModelParts, model: string, caller: Caller | undefined): Promise<FoundModel> {
  models.names.requireAllowed(caller, model);
  for (const behind of models.names.modelsBehind(model)) {
    const found = await models.fleet.models.find(behind);
    if (found === undefined) continue;
    return models.names.isRoute(model) ? { ...found, id: model, owned_by: SERVICE_NAME } : found;
  }
  throw await unknownModel(models, model, caller);
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
