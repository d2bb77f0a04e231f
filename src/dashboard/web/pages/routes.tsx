// Routes: the targets of each side by side, with how certain their differences are, and the collection of their entries.

import type { ComponentChildren } from "preact";
import type { RouteArmRecord, RouteRecord } from "../../../admin/route-schemas.ts";
import { type Collection, readSection, requestsAt } from "../collections/collection.ts";
import { CollectionPage } from "../collections/collection-page.tsx";
import { duration, grouped, money, percent, rate } from "../format.ts";
import { RequestsOf } from "../parts/link.tsx";
import type { Column } from "../parts/table.tsx";
import type { EntryValues, FieldSchema } from "../schema-form.ts";

const PATH = "admin/routes";

const ROUTES: Collection<RouteRecord> = {
  page: "routes",
  title: "Routes",
  article: "a",
  noun: "route",
  about:
    "Each target by its latest 1,000 requests. In brackets: how much it differs from the main target, in 95 of 100 cases; between − and + it may be chance.",
  empty: "There is no route: clients ask for models by their own names.",
  list: {
    path: PATH,
    rowsOf: ({ routes }: { routes: RouteRecord[] }) => routes,
    columns: [
      {
        title: "Route",
        value: ({ name }) => name,
        cell: ({ name }) => <RequestsOf by="route" name={name} class="strong" />,
      },
      ofArms("Target", ({ name, is_main }) => (is_main ? `${name} (main)` : name)),
      ofArms("Weight", ({ weight }) => weight ?? "copies", true),
      ofArms("Requests", ({ total_requests }) => grouped(total_requests), true),
      ofArms("Errors", ({ requests, error_share, compared }) =>
        requests === 0 ? "–" : withBounds(percent(error_share.value), compared?.error_share, percent),
      ),
      ofArms("First token", ({ first_token_ms, compared }) =>
        withBounds(first_token_ms && duration(first_token_ms.mean), compared?.first_token_ms, duration),
      ),
      ofArms("Tokens/s", ({ tokens_per_second, compared }) =>
        withBounds(tokens_per_second && rate(tokens_per_second.mean), compared?.tokens_per_second, rate),
      ),
      ofArms("Cost", ({ cost, compared }) => withBounds(cost && money(cost.mean), compared?.cost, money)),
    ],
  },
  idOf: ({ name }) => name,
  idField: "name",
  async read(get, id) {
    const { schema, config, version } = await readSection<EntryValues[]>(get, "routes");
    const ids = config.map((each) => String(each.name));
    return { schema: schema.items as FieldSchema, version, ids, entry: config.find((each) => each.name === id) };
  },
  ...requestsAt(PATH),
  removal: "Requests for this name are refused from now on, unless a backend serves a model of the name.",
};

export function RoutesPage() {
  return <CollectionPage of={ROUTES} />;
}

/** A column with a line for each target. */
function ofArms(
  title: string,
  line: (arm: RouteArmRecord) => ComponentChildren,
  isNumber = false,
): Column<RouteRecord> {
  return { title, isNumber, cell: ({ arms }) => arms.map((arm) => <div key={arm.name}>{line(arm)}</div>) };
}

interface Bounds {
  low: number;
  high: number;
}

/** A value, and the bounds of its difference from that of the main target. */
function withBounds(value: string | null, bounds: Bounds | null | undefined, write: (value: number) => string) {
  if (value === null || !bounds) return value ?? "–";
  const signed = (bound: number) => `${bound < 0 ? "−" : "+"}${write(Math.abs(bound))}`;
  const isCertain = bounds.low > 0 || bounds.high < 0;
  return (
    <>
      {value}{" "}
      <span class={isCertain ? "strong" : "faint"}>
        ({signed(bounds.low)} … {signed(bounds.high)})
      </span>
    </>
  );
}
