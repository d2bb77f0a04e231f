// Requests and answers of the admin API for organizations, as JSON Schema.

import { changed, entryDryRun } from "../openapi/change-schemas.ts";
import {
  anything,
  component,
  count,
  described,
  flag,
  list,
  namedShape,
  orNull,
  schemasOf,
  text,
  texts,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { entryPatch, entrySchema } from "../openapi/section-schemas.ts";
import { BudgetRecord } from "./budget-schemas.ts";

export const OrganizationRecord = namedShape("Organization", {
  id: text,
  name: orNull(text),
  enabled: flag,
  models: described(orNull(texts), "null: all."),
  rate_limit: orNull(count),
  token_limit: orNull(count),
  budget: described(orNull(anything), "As it is written."),
  budgets: described(list(BudgetRecord), "What is spent of its budget, and of its tokens per minute."),
  keys: described(count, "Keys that name it; those that tokens name are not known beforehand."),
});
export type OrganizationRecord = ValueOf<typeof OrganizationRecord>;

export const OrganizationList = namedShape("OrganizationList", {
  currency: text,
  organizations: list(OrganizationRecord),
  total: count,
});
export type OrganizationList = ValueOf<typeof OrganizationList>;

export const OrganizationChange = component("OrganizationChange", () =>
  described(entryPatch(entrySchema("organizations")), "Fields of an entry of organizations; null removes one."),
);
export const OrganizationChanged = namedShape(
  "OrganizationChanged",
  { ...changed, organization: OrganizationRecord },
  entryDryRun,
);
export const OrganizationRemoved = namedShape(
  "OrganizationRemoved",
  { ...changed, removed_organization: OrganizationRecord },
  entryDryRun,
);

export const ORGANIZATION_SCHEMAS = schemasOf(
  BudgetRecord,
  OrganizationList,
  OrganizationRecord,
  OrganizationChange,
  OrganizationChanged,
  OrganizationRemoved,
);
