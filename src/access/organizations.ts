// What callers have of their organization.

import type { Organization } from "../config/sections/organizations.ts";
import type { Settings } from "../config/sections/registry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { getOrMake } from "../lib/get-or-make.ts";
import { modelsOf } from "./allowed-models.ts";
import type { Caller } from "./caller.ts";

export function createOrganizations(list: Settings["organizations"]) {
  const byId = new Map(list.map((organization) => [organization.id, organization]));
  const models = new Map(list.map(({ id, models: names }) => [id, modelsOf(names)]));
  const members = new WeakMap<Caller, Caller>();
  const of = (id: string | undefined): Organization | undefined => (id === undefined ? undefined : byId.get(id));
  return {
    /** The caller with what it has of its organization. Throws 403 where that is disabled. */
    admit(caller: Caller): Caller {
      const organization = of(caller.organizationId);
      if (organization === undefined) return caller;
      if (!organization.enabled) {
        const message = `The organization '${organization.name ?? organization.id}' is disabled.`;
        throw new GatewayError(ERRORS.organizationDisabled, message);
      }
      return getOrMake(members, caller, () => ({
        ...models.get(organization.id),
        ...caller,
        requestsPerMinute: caller.requestsPerMinute ?? organization.rate_limit,
      }));
    },
  };
}
