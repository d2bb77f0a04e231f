// What the Messages API has besides its generation endpoint: counting tokens, and a model list in its own shape.

import { requireModel } from "../access/api-keys.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { ModelListEntry } from "../models/list.ts";
import type { PublicMetadata } from "../models/metadata-lookup.ts";
import type { GenerateRequest } from "../pipeline/generate.ts";
import { estimateInputTokens } from "../protocols/messages/count-tokens.ts";
import { messagesClient } from "../protocols/messages/index.ts";
import type { Answering, Call } from "../server/endpoint.ts";
import { errorsOf } from "./generation.ts";
import { allowedModels, type ModelDirectory, unknownModel } from "./models.ts";

/** Marks a count that no backend has made (decisions.md, section 4). */
export const ESTIMATE_HEADER = "X-Signalbox-Estimate";

export async function estimatedCount(
  { headers, context }: Call,
  { model, body }: Pick<GenerateRequest, "model" | "body">,
  models: ModelDirectory,
): Promise<Response> {
  if ((await models.findModel(model)) === undefined) throw await unknownModel(models, model, context.caller);
  return Response.json(
    { input_tokens: estimateInputTokens(body.value) },
    { headers: { ...headers, [ESTIMATE_HEADER]: "1" } },
  );
}

const DEFAULT_PAGE = 20;
const MAX_PAGE = 1000;

export function messagesModelList(models: ModelDirectory): Answering {
  return {
    access: "read",
    ...errorsOf(messagesClient),
    async handle({ request, context, headers }) {
      const { searchParams } = new URL(request.url);
      const all = (await allowedModels(models, context.caller)).map((entry) =>
        toMessagesModel(entry, "metadata" in entry ? entry.metadata : undefined),
      );
      const page = pageOf(all, searchParams);
      return Response.json(page, { headers });
    },
  };
}

export function messagesModel(models: ModelDirectory): Answering {
  return {
    access: "read",
    ...errorsOf(messagesClient),
    async handle({ parameters, context, headers }) {
      const { model = "" } = parameters;
      requireModel(context.caller, model);
      const found = await models.findModel(model);
      if (found === undefined) throw await unknownModel(models, model, context.caller);
      return Response.json(toMessagesModel(found, models.modelFields(found).metadata), { headers });
    },
  };
}

interface MessagesModel {
  id: string;
  type: "model";
  display_name: string;
  created_at: string;
  max_input_tokens: number | null;
  max_tokens: number | null;
}

/** Shape: wire/anthropic-messages.md, section 9. What is not known is null. */
function toMessagesModel(
  { id, created }: Pick<ModelListEntry, "id" | "created">,
  metadata: PublicMetadata | undefined,
): MessagesModel {
  return {
    id,
    type: "model",
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
    {
      param: "limit",
    },
  );
}
