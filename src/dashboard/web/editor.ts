// The text of a section while it is edited: read from the gateway, checked there as it is written, and applied or staged.

import { type ReadonlySignal, signal } from "@preact/signals";
import type { ConfigExport, ConfigImported, ImportPreview } from "../../admin/config-schemas.ts";
import type { Action } from "./app/actions.ts";
import { type Api, mayPass } from "./app/api.ts";
import type { Drafts, EditorFormat } from "./app/drafts.ts";
import { atMost } from "./app/timing.ts";
import type { CurlRequest } from "./curl.ts";

/** How long the text rests before it is checked. */
const QUIET_MS = 500;
/** A text that could not be read is asked for again after so long. */
const RETRY_MS = 3_000;

export interface EditorState {
  format: EditorFormat;
  /** As the gateway has it; undefined while it is loaded. */
  original: string | undefined;
  text: string | undefined;
  /** Of the configuration that the text was read from. */
  version: number | undefined;
  /** What the gateway says of the text as it stands; undefined while nothing is known. */
  preview: ImportPreview | undefined;
  thrown: unknown;
  /** It is being checked. */
  isBusy: boolean;
  /** The configuration has changed since the text was read. */
  isStale: boolean;
}

export function isDirty({ text, original }: EditorState): boolean {
  return text !== original;
}

/** Long because these functions share one text. */
export function createEditor({ api, drafts }: { api: Pick<Api, "ask">; drafts: Drafts }, section: string) {
  const isLeftAsJson = drafts.get(section, "yaml") === undefined && drafts.get(section, "json") !== undefined;
  const state = signal<EditorState>({
    format: isLeftAsJson ? "json" : "yaml",
    ...{ original: undefined, text: undefined, version: undefined, preview: undefined, thrown: undefined },
    ...{ isBusy: false, isStale: false },
  });
  /** Answers to earlier questions are not wanted any more. */
  let latest = 0;
  let retry: ReturnType<typeof setTimeout> | undefined;

  function change(more: Partial<EditorState>): void {
    state.value = { ...state.peek(), ...more };
  }

  const exporting = (): CurlRequest => ({
    method: "POST",
    path: "admin/config/export",
    body: { format: state.value.format, sections: [section] },
  });

  function importing(more: object): CurlRequest {
    const { format, text = "", version } = state.value;
    return {
      method: "POST",
      path: "admin/config/import",
      body: { format, content: text, ...(version !== undefined && { version }), ...more },
    };
  }

  async function load(): Promise<void> {
    clearTimeout(retry);
    const number = ++latest;
    try {
      const { content, version } = await api.ask<ConfigExport>(exporting());
      if (number !== latest) return;
      change({ original: content, text: content, version, preview: undefined, thrown: undefined, isStale: false });
      resume();
    } catch (thrown) {
      if (number !== latest) return;
      change({ thrown });
      if (mayPass(thrown)) retry = setTimeout(() => void load(), RETRY_MS);
    }
  }

  /** Goes on with what was left here; what it was written from may not be in force any more. */
  function resume(): void {
    const { format, version } = state.peek();
    const draft = drafts.get(section, format);
    if (draft === undefined) return;
    change({ isStale: draft.version !== version, version: draft.version });
    write(draft.text);
  }

  function write(text: string): void {
    latest++;
    change({ text, isBusy: false, preview: undefined, thrown: undefined });
    const { format, version } = state.peek();
    const isEdited = isDirty(state.peek());
    drafts.set(section, format, isEdited ? { text, version } : undefined);
    if (isEdited) checkSoon.call();
  }

  async function check(): Promise<void> {
    const { text, format } = state.peek();
    if (text === undefined || !isDirty(state.peek())) return;
    const number = ++latest;
    change({ isBusy: true });
    const body = { format, content: text, dry_run: true };
    const checked = await api.ask<ImportPreview>({ method: "POST", path: "admin/config/import", body }).then(
      (preview) => ({ preview, thrown: undefined }),
      (thrown: unknown) => ({ preview: undefined, thrown }),
    );
    if (number === latest) change({ ...checked, isBusy: false });
  }

  const checkSoon = atMost(QUIET_MS, () => void check());

  function reset(): void {
    const { format, original } = state.peek();
    drafts.set(section, format, undefined);
    // A check of the edits that is still to come would take the place of the answer.
    change({ isBusy: false, text: original });
    void load();
  }

  function done(answer: unknown): string | undefined {
    const { format, text } = state.peek();
    change({ original: text });
    drafts.set(section, format, undefined);
    return (answer as ConfigImported | undefined)?.message;
  }

  void load();
  return {
    state: state as ReadonlySignal<EditorState>,
    exporting,
    type: write,
    check: () => void check(),
    reset,
    choose(format: EditorFormat): void {
      change({ format, isBusy: false, text: undefined, original: undefined });
      void load();
    },
    changedElsewhere(): void {
      if (isDirty(state.peek())) change({ isStale: true });
      else void load();
    },
    /** What is written and not applied stays. */
    refresh(): void {
      if (!isDirty(state.peek())) void load();
    },
    applying: (): Action => ({
      title: `Apply the section ${section}`,
      text: "The gateway takes it over at once, as a new version. Secrets that are masked stay as they are.",
      verb: "Apply",
      asked: () => importing({}),
      done,
    }),
    staging: (): Action => ({
      title: `Stage the section ${section}`,
      text: "It stays staged until all staged sections are applied together.",
      verb: "Stage",
      asked: () => importing({ apply: false }),
      done,
    }),
    end(): void {
      checkSoon.end();
      clearTimeout(retry);
    },
  };
}
