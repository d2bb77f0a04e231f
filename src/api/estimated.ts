// The answer to a client that has tokens counted where no backend of the model counts.

import type { JsonObject } from "../lib/json.ts";
import type { Call } from "../server/endpoint.ts";
import { type ModelParts, unknownModel } from "./models.ts";

/** Marks a count that is the gateway's estimate. */
const ESTIMATE_HEADER = "X-Signalbox-Estimate";

/** @param count - the count in the shape of the client's format */
export async function estimated(
  { headers, context }: Call,
  model: string,
  models: ModelParts,
  count: () => JsonObject,
): Promise<Response> {
  if ((await models.fleet.models.find(model)) === undefined) throw await unknownModel(models, model, context.caller);
  return Response.json(count(), { headers: { ...headers, [ESTIMATE_HEADER]: "1" } });
}
