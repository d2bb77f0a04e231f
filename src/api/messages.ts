// What the Messages API has besides its generation endpoint: counting tokens, and a model list in its own shape.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { ModelListEntry } from "../models/list.ts";
import type { PublicMetadata } from "../models/metadata-lookup.ts";
import { type DescribedEndpoint, jsonAnswer, queryParameter } from "../openapi/operation.ts";
import { messagesClient } from "../protocols/messages/index.ts";
import { errorsOf } from "./generation.ts";
import { allowedModels, findAllowed, type ModelParts, modelFields, modelParameter, OF_A_READER } from "./models.ts";

/** How every endpoint in these shapes tells of errors. */
export function messagesErrors() {
  return errorsOf(messagesClient);
}

const DEFAULT_PAGE = 20;
const MAX_PAGE = 1000;

export function messagesModelRoutes(models: ModelParts): DescribedEndpoint[] {
  return [
    {
      method: "GET",
      path: "/anthropic/v1/models",
      id: "listModelsForMessages",
      tag: "Models",
      access: "read",
      summary: "Models in the shape of the Messages API",
      parameters: [
        queryParameter("limit", "Most models of a page.", {
          type: "integer",
          minimum: 1,
          maximum: MAX_PAGE,
          default: DEFAULT_PAGE,
        }),
        queryParameter("after_id", "Only models behind this one."),
        queryParameter("before_id", "Only models in front of this one."),
      ],
      answers: [jsonAnswer("MessagesModelList", "A page of models.")],
      errors: [...OF_A_READER, 400],
      ...messagesErrors(),
      async handle({ request, context, headers }) {
        const { searchParams } = new URL(request.url);
        const all = (await allowedModels(models, context.caller)).map((entry) =>
          toMessagesModel(entry, "metadata" in entry ? entry.metadata : undefined),
        );
        const page = pageOf(all, searchParams);
        return Response.json(page, { headers });
      },
    },
    {
      method: "GET",
      path: "/anthropic/v1/models/{model...}",
      id: "getModelForMessages",
      tag: "Models",
      access: "read",
      summary: "One model in the shape of the Messages API",
      parameters: [modelParameter],
      answers: [jsonAnswer("MessagesModel", "The model.")],
      errors: [...OF_A_READER, 400, 404],
      ...messagesErrors(),
      async handle({ parameters: { model = "" }, context, headers }) {
        const found = await findAllowed(models, model, context.caller);
        return Response.json(toMessagesModel(found, modelFields(models, found).metadata), { headers });
      },
    },
  ];
}

type MessagesModel = ReturnType<typeof toMessagesModel>;

/** ModelInfo of Anthropic's Models API; null where the metadata says nothing. */
function toMessagesModel(
  { id, created }: Pick<ModelListEntry, "id" | "created">,
  metadata: PublicMetadata | undefined,
) {
  return {
    id,
    type: "model" as const,
    display_name: metadata?.display_name ?? id,
    created_at: new Date(created * 1000).toISOString(),
    max_input_tokens: metadata?.limits?.context_window ?? null,
    max_tokens: metadata?.limits?.max_output ?? null,
  };
}

function pageOf(all: readonly MessagesModel[], query: URLSearchParams): object {
  const limit = pageSize(query.get("limit"));
  const before = query.get("before_id");
  const after = query.get("after_id");
  const start = after === null ? 0 : placeOf(all, after, "after_id") + 1;
  const end = before === null ? all.length : placeOf(all, before, "before_id");
  const window = all.slice(start, Math.max(start, end));
  const data = before === null ? window.slice(0, limit) : window.slice(-limit);
  return {
    data,
    has_more: data.length < window.length,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  };
}

function placeOf(all: readonly MessagesModel[], id: string, param: string): number {
  const place = all.findIndex((model) => model.id === id);
  if (place >= 0) return place;
  throw new GatewayError(ERRORS.invalidRequest, `${param}: there is no model '${id}'.`, { param });
}

function pageSize(text: string | null): number {
  if (text === null) return DEFAULT_PAGE;
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE) return limit;
  throw new GatewayError(
    ERRORS.invalidRequest,
    `limit: expected an integer from 1 to ${MAX_PAGE}, got ${text.slice(0, 40)}.`,
    { param: "limit" },
  );
}
