// Configuration: one section at a time as a text, what is staged, and the versions there were.

import type {
  ConfigHistory,
  ConfigSectionInfo,
  ConfigSections,
  ConfigSummary,
  StagedSections,
} from "../../../admin/config-schemas.ts";
import type { Action } from "../app/actions.ts";
import { useApp } from "../app/context.ts";
import { useKept, useLive } from "../app/hooks.ts";
import { useResource } from "../app/resource.ts";
import { plural } from "../format.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { Ago } from "../parts/ago.tsx";
import { Card, Head } from "../parts/card.tsx";
import { ChangeList } from "../parts/change-list.tsx";
import { Link } from "../parts/link.tsx";
import { Notice, Trouble } from "../parts/notice.tsx";
import { fieldsOf } from "../settings-text.ts";
import { EditorCard } from "./configuration-editor.tsx";
import { HistoryCard, VERSIONS_SHOWN } from "./configuration-history.tsx";

export function ConfigurationPage() {
  const { id: section } = useApp().visits.current.value.route;
  const offset = useKept("offset", () => 0);
  const summary = useResource<ConfigSummary>("admin/config");
  const sections = useResource<ConfigSections>("admin/config/sections");
  const staged = useResource<StagedSections>("admin/config/staged");
  const history = useResource<ConfigHistory>(
    () => `admin/config/history?limit=${VERSIONS_SHOWN}&offset=${offset.value}`,
  );
  const schema = useResource<unknown>(() =>
    section === undefined ? undefined : `admin/config/schema?section=${encodeURIComponent(section)}`,
  );
  useLive((event) => {
    if (event === "config") void Promise.all([summary.refresh(), staged.refresh(), history.refresh()]);
  });

  const { value: known } = sections.data;
  const all = [...(known?.sections ?? []), ...(known?.extensions ?? [])];
  const { value: data } = summary.data;
  return (
    <>
      <Head
        title={section === undefined ? "Configuration" : `Configuration: ${section}`}
        tab={section === undefined ? "Configuration" : `${section} · Configuration`}
      >
        {data !== undefined && (
          <span class="faint">
            version {data.version}, <Ago at={data.last_modified} />
          </span>
        )}
      </Head>
      <Trouble of={[summary, sections, staged, history]} />
      <SummaryNotices summary={data} />
      <StagedCard staged={staged.data.value} />
      <div class="config">
        <SectionList sections={all} current={section} staged={data?.pending_sections ?? []} />
        <div class="stack">
          {section === undefined ? (
            <section class="card">
              <p class="empty">Choose a section to see and change it.</p>
            </section>
          ) : (
            <EditorCard section={section} info={all.find(({ name }) => name === section)} />
          )}
          <FieldCard schema={schema.data.value} />
        </div>
      </div>
      <HistoryCard history={history.data.value} offset={offset} />
    </>
  );
}

function SummaryNotices({ summary }: { summary: ConfigSummary | undefined }) {
  if (summary === undefined) return null;
  const { pending_restart, storage_problem } = summary;
  return (
    <>
      {storage_problem !== null && <Notice tone="bad">Changes cannot be kept: {storage_problem}</Notice>}
      {pending_restart.length > 0 && <Notice tone="warn">Waiting for a restart: {pending_restart.join(", ")}.</Notice>}
    </>
  );
}

interface SectionListProps {
  sections: readonly ConfigSectionInfo[];
  current: string | undefined;
  staged: readonly string[];
}

function SectionList({ sections, current, staged }: SectionListProps) {
  const { drafts } = useApp();
  const isEdited = (name: string) => (["yaml", "json"] as const).some((format) => drafts.get(name, format));
  return (
    <nav class="sections card" aria-label="Sections">
      <ul>
        {sections.map(({ name, description }) => (
          <li key={name}>
            <Link to="configuration" id={name} title={description} aria-current={name === current ? "page" : undefined}>
              {name}
              {staged.includes(name) && " · staged"}
              {isEdited(name) && " · edited"}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function FieldCard({ schema }: { schema: unknown }) {
  const fields = fieldsOf(schema);
  if (fields.length === 0) return null;
  return (
    <details class="card">
      <summary>The {plural(fields.length, "field")} of this section</summary>
      <dl class="field-list">
        {fields.map(({ path, type, description, byDefault }) => (
          <div key={path}>
            <dt>
              <code>{path}</code>
              <span class="faint">
                {" "}
                {type}
                {byDefault !== undefined && `, by default ${byDefault}`}
              </span>
            </dt>
            <dd>{description}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

function StagedCard({ staged }: { staged: StagedSections | undefined }) {
  if (staged === undefined || staged.total === 0) return null;
  return (
    <Card
      title="Staged"
      aside={
        <div class="row tight">
          <ActionButton action={FORGETTING}>Forget staged…</ActionButton>
          <ActionButton action={applying(staged)}>Apply staged…</ActionButton>
        </div>
      }
    >
      {staged.staged.map(({ section, user, timestamp, conflict, changes }) => (
        <div key={section}>
          <p>
            <b>{section}</b>{" "}
            <span class="faint">
              {user} <Ago at={timestamp} />
            </span>
          </p>
          {conflict && <Notice tone="warn">This section was changed since.</Notice>}
          <ChangeList changes={{ [section]: changes }} />
        </div>
      ))}
    </Card>
  );
}

function applying({ total, staged }: StagedSections): Action {
  return {
    title: "Apply staged changes",
    text: `One version is made of ${plural(total, "section")}: ${staged.map(({ section }) => section).join(", ")}.`,
    verb: "Apply",
    asked: () => ({ method: "POST", path: "admin/config/apply", body: {} }),
  };
}

const FORGETTING: Action = {
  title: "Discard staged changes",
  text: "The configuration stays as it is.",
  verb: "Forget it",
  isDangerous: true,
  asked: () => ({ method: "DELETE", path: "admin/config/staged" }),
};
