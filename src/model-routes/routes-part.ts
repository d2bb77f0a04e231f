// The routes in force: the turns of their targets go on while the section stays as it is.

import { type Part, remade } from "../config/compile/part.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { RouteSettings } from "../config/sections/routes.ts";
import { createRoutes, type Routes } from "./routes.ts";

interface RoutesPart extends Part {
  /** Undefined: none are configured. */
  readonly inUse: Routes | undefined;
}

export function createRoutesPart(snapshot: Pick<ConfigSnapshot, "settings">): RoutesPart {
  const made = remade<readonly RouteSettings[], { routes: Routes | undefined }>({
    make: (routes) => ({ routes: routes.length === 0 ? undefined : createRoutes(routes) }),
  });
  function follow({ settings }: Pick<ConfigSnapshot, "settings">): void {
    made.of(settings.routes);
  }
  follow(snapshot);
  return {
    follow,
    get inUse() {
      return made.now?.routes;
    },
  };
}
