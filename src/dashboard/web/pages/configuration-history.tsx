// The versions of the configuration, and going back to one.

import { type Signal, signal } from "@preact/signals";
import type { ConfigHistory, ConfigVersion, SectionChanges } from "../../../admin/config-schemas.ts";
import type { Action } from "../app/actions.ts";
import { messageOf } from "../app/api.ts";
import type { App } from "../app/app.ts";
import { useApp } from "../app/context.ts";
import { words } from "../format.ts";
import { Ago } from "../parts/ago.tsx";
import { Button } from "../parts/button.tsx";
import { Card } from "../parts/card.tsx";
import { ChangeList } from "../parts/change-list.tsx";
import { Marked } from "../parts/marks.tsx";
import { Notice } from "../parts/notice.tsx";
import { Pager } from "../parts/pager.tsx";
import { Table } from "../parts/table.tsx";

export const VERSIONS_SHOWN = 10;

interface HistoryCardProps {
  history: ConfigHistory | undefined;
  /** Of the newest version that is shown. */
  offset: Signal<number>;
}

export function HistoryCard({ history, offset }: HistoryCardProps) {
  const app = useApp();
  const turn = (by: number) => {
    offset.value = Math.max(0, offset.value + by * VERSIONS_SHOWN);
  };
  const hasOlder = history !== undefined && offset.value + VERSIONS_SHOWN < history.total_entries;
  return (
    <Card title="Versions">
      <Table
        caption="Versions of the configuration, the newest first"
        rows={history?.history}
        keyOf={({ version }) => String(version)}
        empty="No earlier versions."
        columns={[
          { title: "Version", isNumber: true, cell: ({ version }) => version },
          { title: "When", cell: ({ timestamp }) => <Ago at={timestamp} /> },
          { title: "By", cell: ({ user, source }) => user ?? words(source) },
          { title: "What", class: "wide", cell: (row) => <VersionCell {...row} /> },
          {
            title: "Actions",
            cell: ({ version, rollback_available }) =>
              version === history?.current_version ? (
                <Marked tone="good" text="in force" />
              ) : !app.session.may({ method: "POST", path: `admin/config/rollback/${version}` }) ? null : (
                <Button
                  kind="small"
                  isDisabled={!rollback_available}
                  label={`Go back to version ${version}`}
                  onClick={() => void goBack(app, version)}
                >
                  Go back
                </Button>
              ),
          },
        ]}
      />
      <Pager
        of="versions"
        newer={offset.value === 0 ? undefined : () => turn(-1)}
        older={hasOlder ? () => turn(1) : undefined}
      />
    </Card>
  );
}

function VersionCell({ description, sections_changed, changes, replaced }: ConfigVersion) {
  const hasChanges = Object.values(changes ?? {}).some((each) => Object.keys(each).length > 0);
  return (
    <>
      <div>{description ?? sections_changed.join(", ")}</div>
      {replaced.length > 0 && (
        <Notice tone="warn">The file replaced what the API had changed: {replaced.join(", ")}</Notice>
      )}
      {hasChanges && (
        <details>
          <summary>{sections_changed.join(", ")}</summary>
          <ChangeList changes={changes} />
        </details>
      )}
    </>
  );
}

interface Rollback {
  changes: SectionChanges;
  warnings: string[];
}

/** What it would change is asked for first, and which sections of it to take. */
async function goBack({ api, actions, toasts }: App, version: number): Promise<void> {
  const path = `admin/config/rollback/${version}`;
  try {
    const rollback = await api.ask<Rollback>({ method: "POST", path, body: { dry_run: true } });
    actions.act(goingBack(version, path, rollback));
  } catch (error) {
    toasts.say(messageOf(error), true);
  }
}

function goingBack(version: number, path: string, { changes, warnings }: Rollback): Action {
  const sections = Object.keys(changes);
  const chosen = signal<readonly string[]>(sections.length > 1 ? [] : sections);
  const choose = (section: string, isChosen: boolean) => {
    chosen.value = [...chosen.peek().filter((each) => each !== section), ...(isChosen ? [section] : [])];
  };
  return {
    title: `Go back to version ${version}`,
    text: "A new version is made, in which the sections that you choose are as they were in that version. Revoked secrets stay revoked.",
    verb: "Go back",
    isDangerous: true,
    fields: () => (
      <>
        {sections.length > 1 && (
          <fieldset>
            <legend>Sections</legend>
            {sections.map((section) => (
              <label key={section} class="check-line">
                <input
                  type="checkbox"
                  checked={chosen.value.includes(section)}
                  onChange={(event) => choose(section, event.currentTarget.checked)}
                />{" "}
                {section}
              </label>
            ))}
          </fieldset>
        )}
        {(chosen.value.length > 0 || sections.length === 0) && (
          <ChangeList
            changes={Object.fromEntries(Object.entries(changes).filter(([name]) => chosen.value.includes(name)))}
          />
        )}
        {warnings.map((warning) => (
          <Notice key={warning} tone="warn">
            {warning}
          </Notice>
        ))}
      </>
    ),
    asked: () =>
      chosen.value.length === 0 ? undefined : { method: "POST", path, body: { sections: [...chosen.value] } },
  };
}
