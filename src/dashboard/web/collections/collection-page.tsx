// The pages of a collection: its list, and the forms that the address names (?do=add, /<id>?do=edit, /<id>?do=copy).

import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import type { Action } from "../app/actions.ts";
import { useApp } from "../app/context.ts";
import { setting } from "../app/hooks.ts";
import { useResource } from "../app/resource.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { Head } from "../parts/card.tsx";
import { Link } from "../parts/link.tsx";
import { List, useOrder } from "../parts/list.tsx";
import { Trouble } from "../parts/notice.tsx";
import type { Collection, EntryKind, EntryRows } from "./collection.ts";
import { DryRunOf } from "./dry-run.tsx";
import type { FormKind } from "./entry-form.ts";
import { Tick } from "./form-field.tsx";
import { FormPage } from "./form-page.tsx";

/** The page of a collection: its list and its forms. */
export function CollectionPage<Row>({ of }: { of: Collection<Row> }) {
  return (
    <EntryPages of={of}>
      <CollectionList of={of} />
    </EntryPages>
  );
}

/** The form that the address names; without one, the list. */
export function EntryPages({ of, children }: { of: EntryKind; children: JSX.Element }) {
  const { visits } = useApp();
  const { id, query } = visits.current.value.route;
  const kind = formKind(query.get("do"), id);
  return kind === undefined ? children : <FormPage of={of} kind={kind} id={id} />;
}

function formKind(wanted: string | null, id: string | undefined): FormKind | undefined {
  if (wanted === "add") return "add";
  return id !== undefined && (wanted === "edit" || wanted === "copy") ? wanted : undefined;
}

export function AddLink({ of }: { of: EntryKind }) {
  const { session } = useApp();
  const { page, article, noun } = of;
  if (!session.may(of.add({}, undefined))) return null;
  return (
    <Link to={page} query={{ do: "add" }} class="button">
      Add {article} {noun}
    </Link>
  );
}

function CollectionList<Row>({ of }: { of: Collection<Row> }) {
  const { page, title, about, list, idOf, empty } = of;
  const order = useOrder();
  const answer = useResource<never>(list.path);
  const rows = answer.data.value === undefined ? undefined : list.rowsOf(answer.data.value);
  return (
    <>
      <Head title={title}>
        <AddLink of={of} />
      </Head>
      <Trouble of={[answer]} />
      {about !== undefined && <p class="faint">{about}</p>}
      <List
        name={page}
        caption={title}
        order={order}
        rows={rows}
        keyOf={idOf}
        empty={empty}
        columns={[...list.columns, { title: "Actions", cell: (row) => <EntryActions of={of} row={row} /> }]}
      />
    </>
  );
}

interface EntryActionsProps<Row> {
  of: EntryRows<Row>;
  row: Row;
  /** Further actions of the entry, above those that every collection has. */
  children?: ComponentChildren;
}

export function EntryActions<Row>({ of, row, children }: EntryActionsProps<Row>) {
  const { session } = useApp();
  const id = of.idOf(row);
  const why = of.fixed?.(row);
  if (why !== undefined) return <span class="faint">{why}</span>;
  return (
    <div class="actions">
      {children !== undefined && <div class="row tight">{children}</div>}
      <div class="row tight">
        {session.may(of.add({}, undefined)) && (
          <>
            <Link to={of.page} id={id} query={{ do: "edit" }} class="button" aria-label={`Edit ${id}`}>
              Edit
            </Link>
            <Link to={of.page} id={id} query={{ do: "copy" }} class="button" aria-label={`Duplicate ${id}`}>
              Duplicate
            </Link>
          </>
        )}
        <ActionButton label={`Remove ${id}`} action={removing(of, id)}>
          Remove
        </ActionButton>
      </div>
    </div>
  );
}

function removing({ noun, removal, forced, hasNoDryRun, remove }: EntryKind, id: string): Action {
  const isForced = signal(false);
  const request = () => remove(id, isForced.value);
  return {
    title: `Remove ${id}`,
    text: removal,
    verb: `Remove the ${noun}`,
    isDangerous: true,
    fields: () => (
      <>
        {forced !== undefined && (
          <Tick isTicked={isForced.value} set={setting(isForced)}>
            {forced}
          </Tick>
        )}
        {hasNoDryRun !== true && <DryRunOf request={request()} />}
      </>
    ),
    asked: request,
  };
}
