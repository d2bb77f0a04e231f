// The text of a section while it is edited: read from the gateway, checked there as it is written, and applied or staged.

import type { ConfigExport, ConfigImported, ImportPreview } from "../../admin/config-schemas.ts";
import { type Action, atMost, type PageContext } from "./context.ts";
import type { CurlRequest } from "./curl.ts";
import { condense, type DiffLine, diffLines } from "./diff.ts";

type EditorFormat = "yaml" | "json";

/** How long the text rests before it is checked. */
const QUIET_MS = 500;

export interface TextEditor {
  readonly format: EditorFormat;
  /** Undefined while it is loaded. */
  readonly text: string | undefined;
  readonly isDirty: boolean;
  /** It is being checked. */
  readonly isBusy: boolean;
  /** What the gateway says of the text as it stands; undefined while nothing is known. */
  readonly preview: ImportPreview | undefined;
  readonly thrown: unknown;
  /** The configuration has changed since the text was read. */
  readonly isStale: boolean;
  readonly diff: readonly (DiffLine | null)[];
  type(text: string): void;
  choose(format: EditorFormat): void;
  check(): void;
  reset(): void;
  changedElsewhere(): void;
  applying(): Action;
  staging(): Action;
}

/** Long because these functions share one text. */
export function createEditor(context: PageContext, section: string): TextEditor {
  const { drafts } = context;
  let format: EditorFormat =
    !drafts.has(draftOf(section, "yaml")) && drafts.has(draftOf(section, "json")) ? "json" : "yaml";
  let original: string | undefined;
  let text: string | undefined;
  let version: number | undefined;
  let preview: ImportPreview | undefined;
  let thrown: unknown;
  let isBusy = false;
  let isStale = false;
  let diff: readonly (DiffLine | null)[] = [];
  /** Answers to earlier questions are not wanted any more. */
  let latest = 0;

  const exporting = (): CurlRequest => ({
    method: "POST",
    path: "admin/config/export",
    body: { format, sections: [section] },
  });
  const importing = (more: object): CurlRequest => ({
    method: "POST",
    path: "admin/config/import",
    body: { format, content: text ?? "", ...(version !== undefined && { version }), ...more },
  });

  async function load(): Promise<void> {
    const number = ++latest;
    try {
      const exported = await context.api.ask<ConfigExport>(exporting());
      if (number !== latest) return;
      original = exported.content;
      text = exported.content;
      version = exported.version;
      preview = undefined;
      thrown = undefined;
      isStale = false;
      diff = [];
      resume();
    } catch (error) {
      if (number === latest) thrown = error;
    }
    context.redraw();
  }

  /** Goes on with what was left here; what it was written from may not be in force any more. */
  function resume(): void {
    const draft = drafts.get(draftOf(section, format));
    if (draft === undefined) return;
    isStale = draft.version !== version;
    version = draft.version;
    write(draft.text);
  }

  function write(written: string): void {
    text = written;
    latest++;
    isBusy = false;
    preview = undefined;
    thrown = undefined;
    diff = condense(diffLines(original ?? "", written));
    const draft = draftOf(section, format);
    if (text === original) drafts.delete(draft);
    else drafts.set(draft, { text, version });
    if (text !== original) checkSoon();
    context.redraw();
  }

  async function check(): Promise<void> {
    if (text === undefined || text === original) return;
    const number = ++latest;
    isBusy = true;
    context.redraw();
    let found: ImportPreview | undefined;
    let failure: unknown;
    try {
      const { version: _, ...body } = importing({ dry_run: true }).body as Record<string, unknown>;
      found = await context.api.ask<ImportPreview>({ method: "POST", path: "admin/config/import", body });
    } catch (error) {
      failure = error;
    }
    if (number !== latest) return;
    isBusy = false;
    preview = found;
    thrown = failure;
    context.redraw();
  }

  const checkSoon = atMost(QUIET_MS, () => void check(), context);

  function reset(): void {
    drafts.delete(draftOf(section, format));
    isBusy = false;
    text = original; // a check of the edits that is still to come would take the place of the answer
    void load();
  }

  function done(answer: unknown): string | undefined {
    original = text;
    drafts.delete(draftOf(section, format));
    return (answer as ConfigImported | undefined)?.message;
  }

  const self: TextEditor & { refresh(): void } = {
    get format() {
      return format;
    },
    get text() {
      return text;
    },
    get isDirty() {
      return text !== original;
    },
    get isBusy() {
      return isBusy;
    },
    get preview() {
      return preview;
    },
    get thrown() {
      return thrown;
    },
    get isStale() {
      return isStale;
    },
    get diff() {
      return diff;
    },
    type: write,
    choose(chosen) {
      format = chosen;
      isBusy = false;
      text = undefined;
      original = undefined;
      void load();
    },
    check: () => void check(),
    reset,
    changedElsewhere() {
      if (text === original) void load();
      else isStale = true;
      context.redraw();
    },
    /** What is written and not applied stays. */
    refresh() {
      if (text === original) void load();
    },
    applying: () => ({
      title: `Apply the section ${section}`,
      text: "The gateway takes it over at once, as a new version. Secrets that are masked stay as they are.",
      verb: "Apply",
      asked: () => importing({}),
      done,
    }),
    staging: () => ({
      title: `Stage the section ${section}`,
      text: "It is kept until it is applied together with whatever else is staged.",
      verb: "Stage",
      asked: () => importing({ apply: false }),
      done,
    }),
  };
  context.asks.set(self, exporting);
  void load();
  return self;
}

/** The name that a text is kept under. */
export function draftOf(section: string, format: EditorFormat): string {
  return `${section}.${format}`;
}
