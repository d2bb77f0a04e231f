// The page of a form: the fields of an entry, and beside them what applying it would change.

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { ApiError, messageOf } from "../app/api.ts";
import { useApp } from "../app/context.ts";
import { useKept } from "../app/hooks.ts";
import { Button } from "../parts/button.tsx";
import { Card, Head } from "../parts/card.tsx";
import { CommandLine } from "../parts/copy.tsx";
import { Link } from "../parts/link.tsx";
import { Marked } from "../parts/marks.tsx";
import { Notice } from "../parts/notice.tsx";
import { linkTo } from "../route.ts";
import type { FormField } from "../schema-form.ts";
import type { EntryForms } from "./collection.ts";
import { DryRun } from "./dry-run.tsx";
import { createEntryForm, type EntryForm, type FormKind } from "./entry-form.ts";
import { FormFieldRow, idOf } from "./form-field.tsx";
import { ShownSecret, secretIn } from "./shown-secret.tsx";

interface FormPageProps {
  of: EntryForms;
  kind: FormKind;
  id: string | undefined;
}

const TITLES: Readonly<Record<FormKind, string>> = { add: "Add", edit: "Edit", copy: "Duplicate" };

export function FormPage({ of: collection, kind, id }: FormPageProps) {
  const { api, toasts } = useApp();
  const { value: form } = useKept("form", () => createEntryForm({ api, collection, kind, id }));
  /** Only here: it goes with the page. */
  const secret = useSignal<string | undefined>(undefined);
  useLayoutEffect(() => form.start(), [form]);
  useEffect(() => {
    const ask = (event: Event) => {
      if (form.change.value.differs) event.preventDefault();
    };
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
  }, [form]);
  // The form that had the keyboard is gone then.
  useEffect(() => {
    if (secret.value !== undefined) document.querySelector("h1")?.focus();
  }, [secret.value]);
  const { page, article, noun } = collection;
  const title = kind === "add" ? `Add ${article} ${noun}` : `${TITLES[kind]} ${id}`;

  async function submit(): Promise<void> {
    form.touchAll();
    const faulty = form.form.value?.fields.find(({ path }) => faultsOf(form, path).length > 0);
    if (faulty !== undefined) {
      const element = document.getElementById(idOf(faulty));
      element?.closest("details")?.setAttribute("open", "");
      element?.focus();
    } else if (!form.isChecked()) form.ask();
    else {
      const answer = await form.apply();
      if (answer === undefined) return;
      const made = secretIn(answer);
      if (made !== undefined) secret.value = made;
      else {
        toasts.say((answer as { message?: string }).message ?? "Applied.");
        location.assign(linkTo(page));
      }
    }
  }

  if (secret.value !== undefined) {
    return (
      <>
        <Head title={title} />
        <Card title={`The ${noun} was added`}>
          <ShownSecret secret={secret.value} />
          <div class="row end">
            <Link to={page} class="button">
              Done
            </Link>
          </div>
        </Card>
      </>
    );
  }
  return (
    <>
      <Head title={title}>
        <Link to={page} class="button">
          Cancel
        </Link>
      </Head>
      {form.missing.value !== undefined && (
        <Notice tone="bad" isAlert>
          {messageOf(form.missing.value)}
        </Notice>
      )}
      {form.form.value === undefined ? (
        form.missing.value === undefined && <p class="empty">Loading…</p>
      ) : (
        <form
          class="entry"
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            void submit();
          }}
        >
          <Card title="Settings">
            <Fields form={form} />
          </Card>
          <CheckCard form={form} />
        </form>
      )}
    </>
  );
}

/** Own faults where they may be shown, else what the gateway says. */
function faultsOf(form: EntryForm, path: string): string[] {
  const own = form.touched.value.has(path) ? form.change.value.faults.get(path) : undefined;
  if (own !== undefined) return [own];
  return (form.problems.value.get(path) ?? []).map(({ field, message }) =>
    field === path ? message : `${field.slice(path.length)}: ${message}`,
  );
}

function Fields({ form }: { form: EntryForm }) {
  const { fields = [] } = form.form.value ?? {};
  const groups = Map.groupBy(fields, ({ group }) => group);
  return (
    <>
      {[...groups].map(([group, members]) =>
        group === undefined ? (
          members.map((field) => <OneField key={field.path} form={form} field={field} />)
        ) : (
          <Group key={members[0]?.path} form={form} members={members} />
        ),
      )}
    </>
  );
}

/** Folded where nothing in it is set; opens where something in it is wrong. */
function Group({ form, members }: { form: EntryForm; members: readonly FormField[] }) {
  const { before = {} } = form.form.value ?? {};
  const isOpen = useSignal(members.some(({ path }) => (before[path] ?? "") !== ""));
  const isWrong = members.some(({ path }) => faultsOf(form, path).length > 0);
  useEffect(() => {
    if (isWrong) isOpen.value = true;
  }, [isWrong, isOpen]);
  const group = members[0]?.group;
  return (
    <details
      class="group"
      open={isOpen.value}
      onToggle={(event) => {
        isOpen.value = event.currentTarget.open;
      }}
    >
      <summary>{group?.label}</summary>
      {group?.help !== undefined && <p class="help">{group.help}</p>}
      {members.map((field) => (
        <OneField key={field.path} form={form} field={field} />
      ))}
    </details>
  );
}

function OneField({ form, field }: { form: EntryForm; field: FormField }) {
  const { path } = field;
  return (
    <FormFieldRow
      field={field}
      text={form.texts.value[path] ?? ""}
      before={form.form.value?.before[path] ?? ""}
      set={(text) => form.type(path, text)}
      isFixed={form.kind === "edit" && path === form.collection.idField}
      faults={faultsOf(form, path)}
    />
  );
}

function CheckCard({ form }: { form: EntryForm }) {
  const { curl } = useApp();
  const { kind, collection } = form;
  const request = form.shownRequest();
  const { answer, thrown } = form.check.value;
  const isConflict = thrown instanceof ApiError && thrown.details.expected_version !== undefined;
  return (
    <Card title="What it changes" class="entry-check">
      <div class="check" role="status">
        <CheckState form={form} />
      </div>
      {isConflict && (
        <div class="row">
          <Button onClick={form.reload}>Load the present state</Button>
          <span class="faint">What you typed stays.</span>
        </div>
      )}
      <DryRun answer={answer} problems={form.problems.value.get("") ?? []} />
      {request !== undefined && <CommandLine text={curl(request)} />}
      <div class="row end">
        <Link to={collection.page} class="button">
          Cancel
        </Link>
        <button type="submit" class="main" disabled={form.isApplying.value}>
          {kind === "edit" ? "Save" : `Add the ${collection.noun}`}
        </button>
      </div>
    </Card>
  );
}

function CheckState({ form }: { form: EntryForm }) {
  const { faults, differs } = form.change.value;
  const { isBusy, answer, thrown } = form.check.value;
  const { fields = [] } = form.form.value ?? {};
  if (form.isApplying.value) return <Marked tone="busy" text="Being applied…" />;
  if (thrown !== undefined) return <Marked tone="bad" text={messageOf(thrown)} />;
  if (faults.size > 0) {
    const labels = fields.flatMap(({ path, label }) => (faults.has(path) ? [label] : []));
    return <Marked tone="quiet" text={`Missing or not right: ${labels.join(", ")}`} />;
  }
  if (!differs) return <Marked tone="quiet" text="In force" />;
  if (form.collection.hasNoDryRun === true) return <Marked tone="good" text="Ready" />;
  if (isBusy || answer === undefined) return <Marked tone="busy" text="Being checked…" />;
  return <Marked tone="good" text="Would be accepted." />;
}
