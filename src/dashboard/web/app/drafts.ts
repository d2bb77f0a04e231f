// Texts of configuration sections that were written and not applied yet; they outlive the page that they were written on.

import { signal } from "@preact/signals";

interface EditorDraft {
  text: string;
  /** Of the configuration that it was written from. */
  version: number | undefined;
}

export type EditorFormat = "yaml" | "json";
export type Drafts = ReturnType<typeof createDrafts>;

export function createDrafts() {
  const byName = signal<ReadonlyMap<string, EditorDraft>>(new Map());
  const nameOf = (section: string, format: EditorFormat) => `${section}.${format}`;
  return {
    get: (section: string, format: EditorFormat): EditorDraft | undefined => byName.value.get(nameOf(section, format)),
    /** undefined: there is no draft any more. */
    set(section: string, format: EditorFormat, draft: EditorDraft | undefined): void {
      const others = [...byName.peek()].filter(([name]) => name !== nameOf(section, format));
      byName.value = new Map(draft === undefined ? others : [...others, [nameOf(section, format), draft]]);
    },
    isEmpty: (): boolean => byName.peek().size === 0,
    clear(): void {
      byName.value = new Map();
    },
  };
}
