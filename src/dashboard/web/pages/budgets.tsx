// Budgets: what is spent of each and where it will be at the end of its window, who has spent it, and the collection of their rules.

import { signal } from "@preact/signals";
import type { BudgetRecord, BudgetUsage } from "../../../admin/budget-schemas.ts";
import type { Action } from "../app/actions.ts";
import { useApp } from "../app/context.ts";
import { setting } from "../app/hooks.ts";
import { useResource } from "../app/resource.ts";
import { type Collection, readSection, requestsAt } from "../collections/collection.ts";
import { CollectionPage } from "../collections/collection-page.tsx";
import { dateTime, grouped, money, percent } from "../format.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { Bar, Card } from "../parts/card.tsx";
import { Field } from "../parts/field.tsx";
import { Link } from "../parts/link.tsx";
import { Trouble } from "../parts/notice.tsx";
import { Table } from "../parts/table.tsx";
import type { EntryValues, FieldSchema } from "../schema-form.ts";

type AmountState = BudgetRecord["limits"][number];

const PATH = "admin/budgets";

const BUDGETS: Collection<BudgetRecord> = {
  page: "budgets",
  title: "Budgets",
  article: "a",
  noun: "budget",
  empty: "There is no budget: nothing limits what may be spent.",
  list: {
    path: PATH,
    rowsOf: ({ budgets }: { budgets: readonly BudgetRecord[] }) => budgets,
    columns: [
      {
        title: "Budget",
        value: ({ id }) => id,
        cell: ({ id }) => (
          <Link to="budgets" query={{ of: id }} class="strong">
            {id}
          </Link>
        ),
      },
      { title: "Counts", class: "wide", value: countsText, cell: countsText },
      { title: "Window", value: ({ window }) => window, cell: ({ window }) => window },
      { title: "Spent", value: shareOf, cell: ({ limits }) => limits.map(Spent) },
      { title: "At the end", cell: ({ limits }) => limits.map(Forecast) },
      { title: "Begins again", value: ({ until }) => until, cell: ({ until }) => dateTime(until) },
      { title: "Then", value: thenText, cell: thenText },
      { title: "Reset", cell: (row) => <Reset {...row} /> },
    ],
  },
  idOf: ({ id }) => id,
  fixed({ id, key }) {
    if (key !== null) return `carried by the key ${key}: change it there`;
    return isOfOrganization(id) ? "carried by an organization: change it there" : undefined;
  },
  idField: "id",
  async read(get, id) {
    const { schema, config, version } = await readSection<{ rules: EntryValues[] }>(get, "budgets");
    const { rules } = config;
    return {
      schema: (schema.properties?.rules?.items ?? {}) as FieldSchema,
      version,
      ids: rules.map((rule) => String(rule.id)),
      entry: rules.find((rule) => rule.id === id),
    };
  },
  ...requestsAt(PATH),
  removal: "Nothing is limited by it from now on. What was spent is found again under the same id.",
};

export function BudgetsPage() {
  const { visits } = useApp();
  const id = visits.current.value.route.query.get("of");
  return (
    <>
      <CollectionPage of={BUDGETS} />
      {id !== null && <Spenders key={id} id={id} />}
    </>
  );
}

/** No rule of the section has a colon in its id. */
function isOfOrganization(id: string): boolean {
  return id.startsWith("organization:");
}

function countsText({ match, per }: BudgetRecord): string {
  const names = Object.entries(match).map(([what, each]) => `${what} ${(each as readonly string[]).join(", ")}`);
  return [names.join("; ") || "everything", ...(per === null ? [] : [`for each ${per}`])].join(", ");
}

function thenText({ when_exceeded: then }: BudgetRecord): string {
  return typeof then === "string" ? then : `use ${then.use_model}`;
}

function shareOf({ limits }: BudgetRecord): number {
  return Math.max(...limits.map(({ share }) => share));
}

const amountText = ({ amount }: AmountState, value: number): string =>
  amount === "cost" ? money(value) : grouped(Math.round(value));

const unitOf = ({ amount }: AmountState): string => amount.replace("_", " ");

export function Spent(state: AmountState) {
  const { spent, limit, share } = state;
  return (
    <div key={state.amount}>
      <Bar
        share={share}
        text={`${amountText(state, spent)} of ${amountText(state, limit)} ${unitOf(state)}, ${percent(share)}`}
      />
    </div>
  );
}

function Forecast(state: AmountState) {
  return <div key={state.amount}>{state.forecast === null ? "–" : amountText(state, state.forecast)}</div>;
}

function Reset({ id, key }: BudgetRecord) {
  if (isOfOrganization(id) || (key !== null && id !== `key:${key}`)) return null;
  return (
    <ActionButton label={`Reset ${id}`} action={resetting(id)}>
      Reset
    </ActionButton>
  );
}

/** @param subject - of a budget with per; left out: of all */
function resetting(id: string, subject?: string): Action {
  const reason = signal("");
  return {
    title: subject === undefined ? `Reset ${id}` : `Reset ${id} for ${subject}`,
    text: "What was spent until now does not count any more. A rollback of the configuration takes it back.",
    verb: "Begin from nothing",
    fields: () => (
      <Field id="reason" label="Reason, for the history" value={reason.value} set={setting(reason)} isFirst />
    ),
    asked: () => ({
      method: "POST",
      path: `${PATH}/${encodeURIComponent(id)}/reset`,
      body: {
        ...(subject !== undefined && { subject }),
        ...(reason.value.trim() !== "" && { reason: reason.value.trim() }),
      },
    }),
  };
}

/** Who has spent a budget in the window that goes on. */
function Spenders({ id }: { id: string }) {
  const usage = useResource<BudgetUsage>(() => `${PATH}/${encodeURIComponent(id)}/usage`, { everyMs: 15_000 });
  const { value } = usage.data;
  return (
    <Card title={`Spent of ${id}`}>
      <Trouble of={[usage]} />
      <Table<BudgetUsage["subjects"][number]>
        caption={`Spent of ${id}`}
        rows={value?.subjects}
        keyOf={({ subject }) => subject ?? ""}
        empty="Nothing is spent in this window."
        columns={[
          { title: "By", cell: ({ subject }) => subject ?? "all together" },
          { title: "Share", cell: ({ share }) => <Bar share={share} text={percent(share)} /> },
          { title: "Cost", isNumber: true, cell: ({ cost }) => `${money(cost)} ${value?.currency}` },
          { title: "Requests", isNumber: true, cell: ({ requests }) => grouped(requests) },
          { title: "Tokens in", isNumber: true, cell: ({ input_tokens }) => grouped(input_tokens) },
          { title: "Tokens out", isNumber: true, cell: ({ output_tokens }) => grouped(output_tokens) },
          {
            title: "Reset",
            cell: ({ subject }) =>
              subject !== null &&
              !isOfOrganization(id) && (
                <ActionButton label={`Reset ${subject}`} action={resetting(id, subject)}>
                  Reset
                </ActionButton>
              ),
          },
        ]}
      />
    </Card>
  );
}
