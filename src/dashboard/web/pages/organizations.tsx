// Organizations: what the members of each have together, what is spent of it, and the collection of their entries.

import type { OrganizationList, OrganizationRecord } from "../../../admin/organization-schemas.ts";
import { type Collection, readSection, requestsAt } from "../collections/collection.ts";
import { CollectionPage } from "../collections/collection-page.tsx";
import { grouped } from "../format.ts";
import { Link } from "../parts/link.tsx";
import { Marked } from "../parts/marks.tsx";
import type { Column } from "../parts/table.tsx";
import type { EntryValues, FieldSchema } from "../schema-form.ts";
import { Spent } from "./budgets.tsx";

const PATH = "admin/organizations";

const ORGANIZATIONS: Collection<OrganizationRecord> = {
  page: "organizations",
  title: "Organizations",
  article: "an",
  noun: "organization",
  empty: "There is no organization: keys and tokens have only what they say themselves.",
  list: {
    path: PATH,
    rowsOf: ({ organizations }: OrganizationList) => organizations,
    columns: [
      {
        title: "Organization",
        value: ({ id }) => id,
        cell: ({ id, name }) => (
          <>
            <div class="strong">{id}</div>
            {name !== null && <div class="faint">{name}</div>}
          </>
        ),
      },
      {
        title: "State",
        value: ({ enabled }) => (enabled ? "enabled" : "disabled"),
        cell: ({ enabled }) => <Marked tone={enabled ? "good" : "quiet"} text={enabled ? "enabled" : "disabled"} />,
      },
      { title: "Keys", isNumber: true, value: ({ keys }) => keys, cell: ({ keys }) => grouped(keys) },
      {
        title: "Models",
        value: ({ models }) => models?.join(" "),
        cell: ({ models }) => <div class="clip">{models?.join(", ") ?? "all"}</div>,
      },
      limitColumn("Requests per minute", "rate_limit"),
      limitColumn("Tokens per minute", "token_limit"),
      { title: "Spent", value: shareOf, cell: Budget },
    ],
  },
  idOf: ({ id }) => id,
  idField: "id",
  async read(get, id) {
    const { schema, config, version } = await readSection<EntryValues[]>(get, "organizations");
    const ids = config.map((each) => String(each.id));
    return { schema: schema.items as FieldSchema, version, ids, entry: config.find((each) => each.id === id) };
  },
  ...requestsAt(PATH),
  removal: "Its keys and tokens stay valid, without its models, limits and budget.",
};

export function OrganizationsPage() {
  return <CollectionPage of={ORGANIZATIONS} />;
}

function limitColumn(title: string, name: "rate_limit" | "token_limit"): Column<OrganizationRecord> {
  return {
    title,
    isNumber: true,
    value: ({ [name]: limit }) => limit ?? undefined,
    cell: ({ [name]: limit }) => (limit === null ? "–" : grouped(limit)),
  };
}

const budgetOf = ({ id, budgets }: OrganizationRecord) => budgets.find((budget) => budget.id === `organization:${id}`);

function shareOf(row: OrganizationRecord): number | undefined {
  const budget = budgetOf(row);
  return budget && Math.max(...budget.limits.map(({ share }) => share));
}

function Budget(row: OrganizationRecord) {
  const budget = budgetOf(row);
  if (budget === undefined) return <>–</>;
  return (
    <Link to="budgets" query={{ of: budget.id }}>
      {budget.limits.map(Spent)}
    </Link>
  );
}
