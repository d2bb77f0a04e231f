// GET /v1/me: what the holder of a key may do with it, and what is left to them.

import type { Caller } from "../access/caller.ts";
import { shownAmount } from "../budgets/amounts.ts";
import type { BudgetStanding, Budgets } from "../budgets/budgets.ts";
import type { Settings } from "../config/sections/registry.ts";
import { type DescribedEndpoint, jsonAnswer } from "../openapi/operation.ts";
import { allowedModels, type ModelParts, OF_A_READER } from "./models.ts";

interface MeParts {
  models: ModelParts;
  limits: Settings["rate_limiting"];
  budgets: Pick<Budgets, "standings">;
  currency: string;
}

export function keyRoutes({ models, limits, budgets, currency }: MeParts): DescribedEndpoint[] {
  return [
    {
      method: "GET",
      path: "/v1/me",
      id: "getOwnKey",
      tag: "Models",
      access: "any_key",
      summary: "The caller's own key or token: scopes, models, limits, budgets and its end",
      answers: [jsonAnswer("KeyOfCaller", "The key, without its secret.")],
      errors: OF_A_READER,
      async handle({ context, headers }) {
        const caller = context.caller as Caller;
        const { keyId, userId = null, organizationId = null, scopes, expiresAtMs } = caller;
        const allowed = await allowedModels(models, caller);
        const body = {
          id: keyId,
          user: userId,
          organization: organizationId,
          scopes: [...scopes],
          models: allowed.map(({ id }) => id),
          expires_at: expiresAtMs === Number.POSITIVE_INFINITY ? null : new Date(expiresAtMs).toISOString(),
          limits: limitsOf(caller, limits),
          budgets: (await budgets.standings(caller)).map((standing) => standingView(standing, currency)),
        };
        return Response.json(body, { headers });
      },
    },
  ];
}

function limitsOf({ requestsPerMinute }: Caller, { enabled, limits }: Settings["rate_limiting"]) {
  if (requestsPerMinute !== undefined) return { requests_per_minute: requestsPerMinute };
  if (!enabled) return {};
  const { requests_per_second, burst_capacity } = limits.per_api_key;
  return { requests_per_second, burst: burst_capacity };
}

function standingView({ rule, window, models, endsAtMs, limits }: BudgetStanding, currency: string) {
  return {
    id: rule,
    window,
    models: models ?? null,
    until: new Date(endsAtMs).toISOString(),
    limits: limits.map(({ amount, spent, limit }) => ({
      amount,
      spent: shownAmount(amount, spent),
      limit: shownAmount(amount, limit),
      remaining: shownAmount(amount, Math.max(0, limit - spent)),
      ...(amount === "cost" && { currency }),
    })),
  };
}
