// /admin/organizations: one organization at a time, with what is spent of its budgets and how many keys name it; each change is a
// change of the section organizations and makes one version.

import { createRules, type Rules } from "../budgets/rules.ts";
import { currencyOf } from "../config/sections/currency.ts";
import type { Organization } from "../config/sections/organizations.ts";
import type { Settings } from "../config/sections/registry.ts";
import { type DescribedEndpoint, pathParameter } from "../openapi/operation.ts";
import { budgetRecord } from "./budget-view.ts";
import { createCollection } from "./collection.ts";
import { adminGroup, answer, dryRun, versioned } from "./endpoint.ts";
import { budgetView } from "./key-record.ts";
import {
  ORGANIZATION_SCHEMAS,
  OrganizationChange,
  OrganizationChanged,
  OrganizationList,
  OrganizationRecord,
  OrganizationRemoved,
} from "./organization-schemas.ts";
import type { AdminParts } from "./parts.ts";

type OrganizationParts = Pick<AdminParts, "store" | "keyStore" | "identify" | "clock" | "ledger">;

const endpoint = adminGroup("Organizations", ORGANIZATION_SCHEMAS);
const organizationId = pathParameter("id", "Id of an organization.");

export function organizationRoutes(parts: OrganizationParts): DescribedEndpoint[] {
  const { store } = parts;
  const positionOf = (id: string) => store.current.settings.organizations.findIndex((each) => each.id === id);
  const shown = (position: number) => records(parts, store.current.settings)[position] as OrganizationRecord;
  const organizations = createCollection(store, {
    noun: "organization",
    place: "/admin/organizations",
    idField: "id",
    fixedId: "cannot be changed: keys, tokens and budgets name it",
    path: ["organizations"],
    read: (written) => written,
    positionOf,
    shown: ({ after, position }) => records(parts, after)[position] as OrganizationRecord,
    shownGone: (id) => shown(positionOf(id)),
  });
  return [
    endpoint("GET /admin/organizations", {
      id: "listOrganizations",
      role: "viewer",
      summary: "Every organization, with what is spent of its budgets",
      answers: [versioned(OrganizationList, "The organizations.")],
      handle(call) {
        const rows = records(parts, store.current.settings);
        const currency = currencyOf(store.current.settings);
        const body = { currency, organizations: rows, total: rows.length };
        return answer(call, body, { version: store.current.version });
      },
    }),
    endpoint("POST /admin/organizations", {
      id: "createOrganization",
      role: "operator",
      summary: "Add an organization",
      parameters: [dryRun],
      body: {
        schema: OrganizationChange,
        isChecked: false,
        example: { id: "sales", name: "Sales", budget: { cost: 500, window: "month" }, models: ["gpt-*"] },
      },
      changes: true,
      answers: [versioned(OrganizationChanged, "Added.", 201), versioned(OrganizationChanged, "What would be added.")],
      handle: async (call, read) => await organizations.create(call, organizations.read(await read())),
    }),
    endpoint("GET /admin/organizations/{id...}", {
      id: "getOrganization",
      role: "viewer",
      summary: "One organization",
      parameters: [organizationId],
      answers: [versioned(OrganizationRecord, "The organization.")],
      handle(call) {
        const position = positionOf(call.parameters.id);
        if (position === -1) throw organizations.unknown(call.parameters.id);
        return answer(call, shown(position), { version: store.current.version });
      },
    }),
    endpoint("PUT /admin/organizations/{id...}", {
      id: "updateOrganization",
      role: "operator",
      summary: "Change an organization",
      parameters: [organizationId, dryRun],
      body: { schema: OrganizationChange, isChecked: false, example: { enabled: false } },
      changes: true,
      answers: [versioned(OrganizationChanged, "Changed.")],
      handle: async (call, read) =>
        await organizations.update(call, call.parameters.id, organizations.read(await read())),
    }),
    endpoint("DELETE /admin/organizations/{id...}", {
      id: "deleteOrganization",
      role: "operator",
      summary: "Remove an organization; its keys stay, without its limits",
      parameters: [organizationId, dryRun],
      changes: true,
      answers: [versioned(OrganizationRemoved, "Removed.")],
      handle: (call) => organizations.remove(call, call.parameters.id),
    }),
  ];
}

/** Under the settings that run, or under others. */
function records({ keyStore, identify, clock, ledger }: OrganizationParts, settings: Settings): OrganizationRecord[] {
  const { budgets, api_keys, organizations } = settings;
  const rules = createRules({ budgets: { ...budgets, rules: [] }, keys: [], organizations }, identify);
  const counts = keyStore.membersByOrganization();
  for (const { organization_id: id = "" } of api_keys.keys) counts.set(id, (counts.get(id) ?? 0) + 1);
  const standing = (id: string) => budgetsOf(rules, id).map((rule) => budgetRecord(rule, ledger(), clock.wallTime()));
  return organizations.map((each) => recordOf(each, standing(each.id), counts.get(each.id) ?? 0));
}

function budgetsOf({ byId }: Rules, id: string) {
  const found = [byId(`organization:${id}`), byId(`organization:${id}:tokens`)];
  return found.filter((rule) => rule !== undefined);
}

function recordOf(
  { id, name, enabled, models, rate_limit, token_limit, budget }: Organization,
  budgets: OrganizationRecord["budgets"],
  keys: number,
): OrganizationRecord {
  return {
    id,
    name: name ?? null,
    enabled,
    models: models ?? null,
    rate_limit: rate_limit ?? null,
    token_limit: token_limit ?? null,
    budget: budget === undefined ? null : budgetView(budget),
    budgets,
    keys,
  };
}
