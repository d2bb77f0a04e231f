// The table of presets in docs/backends.md, made from the rows of src/presets.ts.

import { join } from "node:path";
import { PRESETS, type Preset } from "../src/presets.ts";

export const BACKENDS_PAGE = join(import.meta.dir, "..", "docs", "backends.md");

const BEGIN = "<!-- presets: written by scripts/presets.ts -->\n";
const END = "<!-- /presets -->\n";

/** The page with the table as the rows have it now. */
export function withPresets(page: string): string {
  const [before, rest] = page.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined)
    throw new Error(`docs/backends.md has lost the lines ${BEGIN}${END}`);
  return before + BEGIN + renderTable() + END + after;
}

function renderTable(): string {
  const rows = Object.entries<Preset>(PRESETS).map(([name, preset]) => {
    const { spellings = [], url, urlForm = "", key, isFound, serves, list } = preset;
    const variable = key === undefined ? "" : `\`${key}\`${isFound === true ? " \\*" : ""}`;
    const cells = [
      `\`${name}\``,
      spellings.map((spelling) => `\`${spelling}\``).join(", "),
      url === undefined ? `none: \`${urlForm}\`` : `\`${url}\``,
      variable,
      serves.join(", ") + (list === false ? "; `models` must be configured" : ""),
    ];
    return `| ${cells.join(" | ")} |`;
  });
  return `| Type | Other spellings | Base URL | Variable | Speaks itself |\n|---|---|---|---|---|\n${rows.join("\n")}\n`;
}
