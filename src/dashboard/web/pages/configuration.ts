// Configuration: one section at a time as a text that is checked while it is written, what differs, what is staged, and the
// versions there were.

import type {
  ConfigHistory,
  ConfigSectionInfo,
  ConfigSections,
  ConfigSummary,
  ConfigVersion,
  SectionChanges,
  StagedSections,
} from "../../../admin/config-schemas.ts";
import { problems } from "../action-dialog.ts";
import { type MakePage, type PageContext, type Resource, resource } from "../context.ts";
import { createEditor, draftOf, type TextEditor } from "../editor.ts";
import { ago, dateTime, plural, words } from "../format.ts";
import { marked } from "../marks.ts";
import { button, card, cardWith, choice, notice, table, trouble } from "../parts.ts";
import { linkTo } from "../route.ts";
import { fieldsOf, valueText } from "../settings-text.ts";
import { type Children, h, type View } from "../view.ts";

const PAGE_SIZE = 10;

const RELOADS: Readonly<Record<string, string>> = {
  immediate: "takes effect at once",
  gradual: "takes effect for new requests and connections",
  requires_restart: "takes effect at the next start",
};

export const configurationPage: MakePage = (context) => {
  const section = context.route.id;
  let offset = 0;
  const summary = resource<ConfigSummary>(context, () => "admin/config");
  const sections = resource<ConfigSections>(context, () => "admin/config/sections");
  const staged = resource<StagedSections>(context, () => "admin/config/staged");
  const history = resource<ConfigHistory>(context, () => `admin/config/history?limit=${PAGE_SIZE}&offset=${offset}`);
  const schema = resource<unknown>(context, () =>
    section === undefined ? undefined : `admin/config/schema?section=${encodeURIComponent(section)}`,
  );
  const editor = section === undefined ? undefined : createEditor(context, section);
  context.onLeave(
    context.live.listen((event) => {
      if (event !== "config") return;
      editor?.changedElsewhere();
      void Promise.all([summary.refresh(), staged.refresh(), history.refresh()]);
    }),
  );

  function turn(by: number): void {
    offset = Math.max(0, offset + by * PAGE_SIZE);
    void history.refresh();
  }

  const all = () => [...(sections.data?.sections ?? []), ...(sections.data?.extensions ?? [])];
  return {
    title: section === undefined ? "Configuration" : `${section} · Configuration`,
    view: () => [
      h(
        "div",
        { class: "head" },
        h("h1", { tabindex: "-1" }, section === undefined ? "Configuration" : `Configuration: ${section}`),
        summary.data !== undefined &&
          h(
            "span",
            { class: "faint" },
            `version ${summary.data.version}, ${ago(Date.parse(summary.data.last_modified), context.now())}`,
          ),
      ),
      trouble(summary, sections, history),
      summaryNotices(summary.data),
      stagedCard(context, staged.data),
      h(
        "div",
        { class: "config" },
        sectionList(all(), section, (name) => [
          summary.data?.pending_sections.includes(name) && " · staged",
          (["yaml", "json"] as const).some((format) => context.drafts.has(draftOf(name, format))) && " · edited",
        ]),
        h(
          "div",
          { class: "stack" },
          editor === undefined
            ? noSection()
            : editorCard(
                context,
                editor,
                all().find(({ name }) => name === section),
              ),
          fieldCard(schema),
        ),
      ),
      historyCard(context, history, offset, turn),
    ],
  };
};

function summaryNotices(summary: ConfigSummary | undefined): Children {
  if (summary === undefined) return null;
  const { pending_restart, storage_problem } = summary;
  return [
    storage_problem !== null && notice("bad", `SectionChanges cannot be kept: ${storage_problem}`),
    pending_restart.length > 0 && notice("warn", `Waiting for a restart: ${pending_restart.join(", ")}.`),
  ];
}

function sectionList(
  sections: readonly ConfigSectionInfo[],
  current: string | undefined,
  notes: (section: string) => Children,
): View {
  return h(
    "nav",
    { class: "sections card", "aria-label": "Sections" },
    h(
      "ul",
      null,
      sections.map(({ name, description }) =>
        h(
          "li",
          { key: name },
          h(
            "a",
            {
              href: linkTo("configuration", name),
              title: description,
              "aria-current": name === current ? "page" : undefined,
            },
            name,
            notes(name),
          ),
        ),
      ),
    ),
  );
}

function noSection(): View {
  return h("section", { class: "card" }, h("p", { class: "empty" }, "Choose a section to see and change it."));
}

function editorCard(context: PageContext, editor: TextEditor, info: ConfigSectionInfo | undefined): View {
  const { text, isDirty, isBusy, preview, thrown, isStale, diff, format } = editor;
  const isFine = isDirty && preview?.valid === true && !isBusy;
  const formats = [
    ["yaml", "YAML"],
    ["json", "JSON"],
  ] as const;
  return cardWith(
    "Edit",
    choice("Format", formats, format, (chosen) => editor.choose(chosen as "yaml" | "json")),
    info !== undefined &&
      h("p", { class: "faint" }, `${info.description} A change ${RELOADS[info.hot_reload_capability] ?? ""}.`),
    isStale &&
      notice(
        "warn",
        "The configuration was changed meanwhile. ",
        button("Load it again", () => editor.reset(), { kind: "small" }),
      ),
    h("label", { for: "editor", class: "unseen" }, "Text of the section"),
    h("textarea", {
      id: "editor",
      class: "editor",
      value: text ?? "",
      disabled: text === undefined,
      spellcheck: "false",
      autocapitalize: "off",
      rows: Math.max(8, Math.min(32, (text ?? "").split("\n").length + 1)),
      "aria-describedby": "editor-check",
      oninput: (event: { target: HTMLTextAreaElement }) => editor.type(event.target.value),
    }),
    h("div", { id: "editor-check", class: "check", role: "status" }, checkLine(editor)),
    thrown !== undefined && problems(thrown),
    preview !== undefined &&
      !preview.valid &&
      h(
        "ul",
        { class: "problems" },
        preview.errors.map(({ field, message, line }) =>
          h("li", null, line !== undefined && `line ${line}: `, field !== "" && h("code", null, field), ` ${message}`),
        ),
      ),
    preview?.warnings.map((warning) => notice("warn", warning)),
    isDirty && diffView(diff),
    isDirty && preview?.valid === true && changeList(preview.changes_preview),
    h(
      "div",
      { class: "row end" },
      button("Undo edits", () => editor.reset(), { disabled: !isDirty }),
      button("Dry run", () => editor.check(), { disabled: !isDirty || isBusy }),
      button("Stage…", () => context.act(editor.staging()), { disabled: !isFine }),
      button("Apply…", () => context.act(editor.applying()), { kind: "main", disabled: !isFine }),
    ),
  );
}

function checkLine({ isDirty, isBusy, preview, thrown, text }: TextEditor): Children {
  if (text === undefined)
    return thrown === undefined
      ? "Loading…"
      : marked("bad", thrown instanceof Error ? thrown.message : "It cannot be read.");
  if (!isDirty) return marked("quiet", "As it is in force");
  if (isBusy) return marked("busy", "Being checked…");
  if (thrown !== undefined) return marked("bad", thrown instanceof Error ? thrown.message : "It cannot be checked.");
  if (preview === undefined) return marked("busy", "Not checked yet");
  if (!preview.valid) return marked("bad", `${plural(preview.errors.length, "problem")}: nothing of it would be taken`);
  return marked("good", `Would be accepted. ${preview.estimated_impact ?? ""}`);
}

function diffView(diff: TextEditor["diff"]): View {
  return h(
    "pre",
    { class: "diff", tabindex: "0", "aria-label": "What differs" },
    diff.map((line) => {
      if (line === null) return h("span", { class: "line gap" }, "⋯\n");
      if (line.kind === "same") return h("span", { class: "line" }, `  ${line.text}\n`);
      return line.kind === "added"
        ? h("ins", { class: "line" }, `+ ${line.text}\n`)
        : h("del", { class: "line" }, `- ${line.text}\n`);
    }),
  );
}

/** Field by field, as the gateway tells it. */
function changeList(changes: SectionChanges): View {
  const fields = Object.entries(changes).flatMap(([section, each]) =>
    Object.entries(each).map(([path, change]) => [`${section}.${path}`, change] as const),
  );
  return h(
    "ul",
    { class: "changes" },
    fields.length === 0 && h("li", { key: "(none)" }, "Nothing differs in what it means."),
    fields.map(([path, { from, to }]) =>
      h(
        "li",
        { key: path },
        h("code", null, path),
        " ",
        h("del", null, valueText(from)),
        " → ",
        h("ins", null, valueText(to)),
      ),
    ),
  );
}

function fieldCard(schema: Resource<unknown>): Children {
  const fields = fieldsOf(schema.data);
  if (fields.length === 0) return null;
  return h(
    "details",
    { class: "card" },
    h("summary", null, `The ${plural(fields.length, "field")} of this section`),
    h(
      "dl",
      { class: "field-list" },
      fields.map(({ path, type, description, byDefault }) =>
        h(
          "div",
          { key: path },
          h(
            "dt",
            null,
            h("code", null, path),
            h("span", { class: "faint" }, ` ${type}${byDefault === undefined ? "" : `, by default ${byDefault}`}`),
          ),
          h("dd", null, description),
        ),
      ),
    ),
  );
}

function stagedCard(context: PageContext, staged: StagedSections | undefined): Children {
  if (staged === undefined || staged.total === 0) return null;
  const apply = () =>
    context.act({
      title: "Apply what is staged",
      text: `One version is made of ${plural(staged.total, "section")}: ${staged.staged.map(({ section }) => section).join(", ")}.`,
      verb: "Apply",
      asked: () => ({ method: "POST", path: "admin/config/apply", body: {} }),
    });
  const discard = () =>
    context.act({
      title: "Forget what is staged",
      text: "The configuration stays as it is.",
      verb: "Forget it",
      isDangerous: true,
      asked: () => ({ method: "DELETE", path: "admin/config/staged" }),
    });
  return cardWith(
    "Staged",
    h(
      "div",
      { class: "row tight" },
      button("Forget staged…", discard, { kind: "small" }),
      button("Apply staged…", apply, { kind: "small" }),
    ),
    staged.staged.map(({ section, user, timestamp, conflict, changes }) =>
      h(
        "div",
        { key: section },
        h(
          "p",
          null,
          h("b", null, section),
          h("span", { class: "faint" }, ` ${user ?? ""} ${ago(Date.parse(timestamp), context.now())}`),
        ),
        conflict && notice("warn", "This section was changed since."),
        changeList({ [section]: changes }),
      ),
    ),
  );
}

function historyCard(
  context: PageContext,
  history: Resource<ConfigHistory>,
  offset: number,
  turn: (by: number) => void,
): View {
  const { data } = history;
  return card(
    "Versions",
    table<ConfigVersion>({
      caption: "Versions of the configuration, the newest first",
      rows: data?.history ?? [],
      keyOf: ({ version }) => String(version),
      empty: data === undefined ? "Loading…" : "There is no earlier version.",
      columns: [
        { title: "Version", isNumber: true, cell: ({ version }) => version },
        {
          title: "When",
          cell: ({ timestamp }) => h("span", { title: dateTime(timestamp) }, ago(Date.parse(timestamp), context.now())),
        },
        { title: "By", cell: ({ user, source }) => user ?? words(source) },
        { title: "What", class: "wide", cell: versionCell },
        {
          title: "Actions",
          cell: ({ version, rollback_available }) =>
            version === data?.current_version
              ? marked("good", "in force")
              : button("Go back", () => void rollBack(context, version), {
                  kind: "small",
                  disabled: !rollback_available,
                  label: `Go back to version ${version}`,
                }),
        },
      ],
    }),
    h(
      "div",
      { class: "row end" },
      button("Newer", () => turn(-1), { disabled: offset === 0, label: "Newer versions" }),
      button("Older", () => turn(1), {
        disabled: data === undefined || offset + PAGE_SIZE >= data.total_entries,
        label: "Older versions",
      }),
    ),
  );
}

function versionCell({ description, sections_changed, changes, replaced }: ConfigVersion): Children {
  const hasChanges = Object.values(changes ?? {}).some((each) => Object.keys(each).length > 0);
  return [
    h("div", null, description ?? sections_changed.join(", ")),
    replaced.length > 0 && notice("warn", `The file replaced what the API had changed: ${replaced.join(", ")}`),
    hasChanges && h("details", null, h("summary", null, sections_changed.join(", ")), changeList(changes)),
  ];
}

/** What it would change is asked for first, and which sections of it to take. */
async function rollBack(context: PageContext, version: number): Promise<void> {
  const path = `admin/config/rollback/${version}`;
  try {
    const dryRun = { method: "POST", path, body: { dry_run: true } } as const;
    const { changes, warnings } = await context.api.ask<{ changes: SectionChanges; warnings: string[] }>(dryRun);
    const sections = Object.keys(changes);
    const chosen = new Set(sections.length > 1 ? [] : sections);
    const choose = (section: string, isChosen: boolean) => {
      if (isChosen) chosen.add(section);
      else chosen.delete(section);
      context.redraw();
    };
    context.act({
      title: `Go back to version ${version}`,
      text: "A new version is made, in which the sections that you choose are as they were in that version. Revoked secrets stay revoked.",
      verb: "Go back",
      isDangerous: true,
      fields: () => [
        sections.length > 1 &&
          h(
            "fieldset",
            null,
            h("legend", null, "Sections"),
            sections.map((section) => sectionChoice(section, chosen.has(section), choose)),
          ),
        (chosen.size > 0 || sections.length === 0) &&
          changeList(Object.fromEntries(Object.entries(changes).filter(([section]) => chosen.has(section)))),
        warnings.map((warning) => notice("warn", warning)),
      ],
      asked: () => (chosen.size === 0 ? undefined : { method: "POST", path, body: { sections: [...chosen] } }),
    });
  } catch (error) {
    context.say(error instanceof Error ? error.message : "It cannot be asked for.", true);
  }
}

function sectionChoice(section: string, checked: boolean, choose: (section: string, isChosen: boolean) => void): View {
  const onchange = (event: Event) => choose(section, (event.target as HTMLInputElement).checked);
  return h(
    "label",
    { key: section, class: "choice" },
    h("input", { type: "checkbox", checked, onchange }),
    ` ${section}`,
  );
}
