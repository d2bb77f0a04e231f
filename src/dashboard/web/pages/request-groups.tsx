// Requests that are alike, counted: "145 × 403 model_not_allowed · gpt-4o · team-c", each with its requests behind it.

import type { RequestGroups as Groups } from "../../../admin/request-schemas.ts";
import { useApp } from "../app/context.ts";
import { useResource } from "../app/resource.ts";
import { grouped } from "../format.ts";
import { Ago } from "../parts/ago.tsx";
import { Bar } from "../parts/card.tsx";
import { Link } from "../parts/link.tsx";
import { Trouble } from "../parts/notice.tsx";
import { Table } from "../parts/table.tsx";

type AlikeRequests = Groups["groups"][number];

const BY = "outcome,status,code,model,key";
const MOST_GROUPS = 100;

interface RequestGroupsProps {
  caption: string;
  /** Parameters of GET /admin/requests/groups besides the time. */
  filters: string;
  /** Parameters of the address of the requests page that are kept behind a group. */
  kept?: Readonly<Record<string, string | undefined>>;
  most?: number;
  empty: string;
}

export function RequestGroups({ caption, filters, kept, most = MOST_GROUPS, empty }: RequestGroupsProps) {
  const { range } = useApp();
  const groups = useResource<Groups>(
    () => `admin/requests/groups?by=${BY}&limit=${most}&${range.query()}${filters === "" ? "" : `&${filters}`}`,
    { everyMs: 15_000 },
  );
  const { value: data } = groups.data;
  const largest = data?.groups[0]?.count ?? 1;
  return (
    <>
      <Trouble of={[groups]} />
      <Table<AlikeRequests>
        caption={caption}
        rows={data?.groups}
        keyOf={({ example_id }) => example_id}
        empty={empty}
        columns={[
          {
            title: "Requests",
            isNumber: true,
            cell: ({ count }) => <Bar share={count / largest} text={grouped(count)} />,
          },
          { title: "What", class: "wide", cell: (group) => <GroupLink group={group} kept={kept} /> },
          { title: "Model", cell: ({ model }) => textOf(model) },
          { title: "Key", cell: ({ key_id }) => textOf(key_id) },
          { title: "First", isExtra: true, cell: ({ first_at }) => <Ago at={first_at} /> },
          { title: "Last", cell: ({ last_at }) => <Ago at={last_at} /> },
        ]}
      />
      {data !== undefined && data.omitted > 0 && (
        <p class="faint">{grouped(data.omitted)} further requests are in smaller groups.</p>
      )}
    </>
  );
}

function GroupLink({ group, kept }: { group: AlikeRequests; kept: RequestGroupsProps["kept"] }) {
  const { outcome, status, code, model, key_id } = group;
  return (
    <Link
      to="requests"
      query={{
        ...kept,
        view: undefined,
        outcome: outcome ?? undefined,
        status: status?.toString(),
        code: code ?? undefined,
        model: model || undefined,
        key: key_id ?? undefined,
      }}
    >
      {[status, code ?? outcome].filter((part) => part !== null && part !== undefined).join(" ")}
    </Link>
  );
}

function textOf(name: string | null | undefined): string {
  return name || "–";
}
