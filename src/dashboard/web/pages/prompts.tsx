// Prompts: the files of global_prompts.prompts_dir, which settings name them, and their texts.

import type { PromptFile, PromptFileList } from "../../../admin/config-schemas.ts";
import type { Collection } from "../collections/collection.ts";
import { CollectionPage } from "../collections/collection-page.tsx";
import type { CurlRequest } from "../curl.ts";
import { bytes, dateTime } from "../format.ts";
import { Link } from "../parts/link.tsx";
import type { FieldSchema } from "../schema-form.ts";

type PromptRow = PromptFileList["prompts"][number];

const PATH = "admin/config/prompts";

/** Files are no section of the configuration, which would have a schema of them. */
const SCHEMA: FieldSchema = {
  type: "object",
  required: ["path", "content"],
  properties: {
    path: { type: "string", description: "Below prompts_dir; ends in .md, .txt or .prompt." },
    content: { type: "string", format: "long-text", description: "The system prompt. The next request uses it." },
  },
};

const PROMPTS: Collection<PromptRow> = {
  page: "prompts",
  title: "Prompts",
  article: "a",
  noun: "prompt file",
  about: "System prompts that the gateway adds to requests, for settings of global_prompts that name a file.",
  empty: "There is no prompt file in global_prompts.prompts_dir. Add one, then name it in the section global_prompts.",
  list: {
    path: PATH,
    rowsOf: ({ prompts }: PromptFileList) => prompts,
    columns: [
      { title: "File", value: ({ path }) => path, cell: ({ path }) => <span class="strong">{path}</span> },
      {
        title: "Used by",
        class: "wide",
        value: ({ used_by }) => used_by.join(" "),
        cell: ({ used_by }) =>
          used_by.length === 0 ? (
            <Link to="configuration" id="global_prompts">
              No setting names it
            </Link>
          ) : (
            used_by.join(", ")
          ),
      },
      { title: "Size", isNumber: true, value: ({ size }) => size, cell: ({ size }) => bytes(size) },
      { title: "Changed", value: ({ modified_at }) => modified_at, cell: ({ modified_at }) => dateTime(modified_at) },
    ],
  },
  idOf: ({ path }) => path,
  idField: "path",
  copyOf: (path) => path.replace(/(\.[^.]*)$/, "-copy$1"),
  async read(get, id) {
    const { prompts } = await get<PromptFileList>(PATH);
    const ids = prompts.map(({ path }) => path);
    const isThere = id !== undefined && ids.includes(id);
    const entry = isThere ? await get<PromptFile>(pathOf(id)) : undefined;
    return { schema: SCHEMA, version: undefined, ids, entry: entry && { path: entry.path, content: entry.content } };
  },
  add: ({ path, content }) => write(String(path), content),
  change: (id, { content }) => write(id, content),
  remove: (id) => ({ method: "DELETE", path: pathOf(id) }),
  removal: "The file is deleted. One that a setting of global_prompts names cannot be removed.",
  hasNoDryRun: true,
};

/** Slashes stay: they part the folders of the path. */
function pathOf(path: string): string {
  return `${PATH}/${path.split("/").map(encodeURIComponent).join("/")}`;
}

function write(path: string, content: unknown): CurlRequest {
  return { method: "PUT", path: pathOf(path), body: { content } };
}

export function PromptsPage() {
  return <CollectionPage of={PROMPTS} />;
}
