// The editor of a section: its text, what the gateway says of it, and what differs.

import type { ConfigSectionInfo } from "../../../admin/config-schemas.ts";
import { messageOf } from "../app/api.ts";
import { useApp } from "../app/context.ts";
import type { EditorFormat } from "../app/drafts.ts";
import { useEnding, useLive } from "../app/hooks.ts";
import { condense, diffLines } from "../diff.ts";
import { createEditor, type EditorState, isDirty } from "../editor.ts";
import { plural } from "../format.ts";
import { Button, Choice } from "../parts/button.tsx";
import { Card } from "../parts/card.tsx";
import { ChangeList } from "../parts/change-list.tsx";
import { Marked } from "../parts/marks.tsx";
import { Notice, ProblemList, Problems } from "../parts/notice.tsx";

const RELOADS: Readonly<Record<string, string>> = {
  immediate: "takes effect at once",
  gradual: "takes effect for new requests and connections",
  requires_restart: "takes effect at the next start",
};

const FORMATS = [
  ["yaml", "YAML"],
  ["json", "JSON"],
] as const;

const FEWEST_ROWS = 8;
const MOST_ROWS = 32;

interface EditorCardProps {
  section: string;
  info: ConfigSectionInfo | undefined;
}

export function EditorCard({ section, info }: EditorCardProps) {
  const app = useApp();
  const editor = useEnding(() => {
    const made = createEditor(app, section);
    const forget = app.asks.add({ request: made.exporting, refresh: made.refresh });
    return {
      ...made,
      end() {
        made.end();
        forget();
      },
    };
  });
  useLive((event) => {
    if (event === "config") editor.changedElsewhere();
  });
  const state = editor.state.value;
  const { text, preview, isBusy, isStale, thrown, format } = state;
  const isEdited = isDirty(state);
  const mayChange = app.session.may({ method: "POST", path: "admin/config/import" });
  const isFine = isEdited && preview?.valid === true && !isBusy;
  return (
    <Card
      title="Edit"
      aside={
        <Choice
          label="Format"
          options={FORMATS}
          chosen={format}
          choose={(chosen) => editor.choose(chosen as EditorFormat)}
        />
      }
    >
      {info !== undefined && (
        <p class="faint">
          {info.description} A change {RELOADS[info.hot_reload_capability]}.
        </p>
      )}
      {isStale && <StaleNotice reload={editor.reset} />}
      <label for="editor" class="unseen">
        Text of the section
      </label>
      <textarea
        id="editor"
        class="editor"
        value={text ?? ""}
        disabled={text === undefined}
        readOnly={!mayChange}
        spellcheck={false}
        autocapitalize="off"
        rows={Math.max(FEWEST_ROWS, Math.min(MOST_ROWS, (text ?? "").split("\n").length + 1))}
        aria-describedby="editor-check"
        onInput={(event) => editor.type(event.currentTarget.value)}
      />
      <div id="editor-check" class="check" role="status">
        <Check {...state} />
      </div>
      {thrown !== undefined && <Problems of={thrown} />}
      {preview?.valid === false && <ProblemList problems={preview.errors} />}
      {preview?.warnings.map((warning) => (
        <Notice key={warning} tone="warn">
          {warning}
        </Notice>
      ))}
      {isEdited && <Diff before={state.original ?? ""} after={text ?? ""} />}
      {isEdited && preview?.valid === true && <ChangeList changes={preview.changes_preview} />}
      {!mayChange && <p class="faint">Only the role admin changes the configuration.</p>}
      <div class="row end">
        <Button isDisabled={!isEdited} onClick={editor.reset}>
          Undo edits
        </Button>
        <Button isDisabled={!isEdited || isBusy} onClick={editor.check}>
          Dry run
        </Button>
        <Button isDisabled={!isFine} onClick={() => app.actions.act(editor.staging())}>
          Stage…
        </Button>
        <Button kind="main" isDisabled={!isFine} onClick={() => app.actions.act(editor.applying())}>
          Apply…
        </Button>
      </div>
    </Card>
  );
}

function StaleNotice({ reload }: { reload(): void }) {
  return (
    <Notice tone="warn">
      The configuration was changed meanwhile.{" "}
      <Button kind="small" onClick={reload}>
        Load it again
      </Button>
    </Notice>
  );
}

function Check(state: EditorState) {
  const { text, thrown, isBusy, preview } = state;
  if (text === undefined && thrown === undefined) return "Loading…";
  if (text !== undefined && !isDirty(state)) return <Marked tone="quiet" text="In force" />;
  if (isBusy) return <Marked tone="busy" text="Being checked…" />;
  if (thrown !== undefined) return <Marked tone="bad" text={messageOf(thrown)} />;
  if (preview === undefined) return <Marked tone="busy" text="Not checked yet" />;
  if (preview.valid) return <Marked tone="good" text={`Would be accepted. ${preview.estimated_impact ?? ""}`} />;
  return <Marked tone="bad" text={`${plural(preview.errors.length, "problem")}: nothing of it would be taken`} />;
}

function Diff({ before, after }: { before: string; after: string }) {
  const lines = condense(diffLines(before, after));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is scrolled by the keyboard, too
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: it names what is scrolled
    <pre class="diff" tabIndex={0} aria-label="What differs">
      {lines.map((line, index) => {
        const key = `${index} ${line?.kind}`;
        if (line === null) {
          return (
            <span key={key} class="line gap">
              {"⋯\n"}
            </span>
          );
        }
        const { kind, text } = line;
        if (kind === "added") return <ins key={key} class="line">{`+ ${text}\n`}</ins>;
        if (kind === "removed") return <del key={key} class="line">{`- ${text}\n`}</del>;
        return <span key={key} class="line">{`  ${text}\n`}</span>;
      })}
    </pre>
  );
}
