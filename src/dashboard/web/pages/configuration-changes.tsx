// What differs between two configurations, field by field, as the gateway tells it.

import type { SectionChanges } from "../../../admin/config-schemas.ts";
import { valueText } from "../settings-text.ts";

export function ChangeList({ changes }: { changes: SectionChanges }) {
  const fields = Object.entries(changes).flatMap(([section, each]) =>
    Object.entries(each).map(([path, change]) => ({ path: `${section}.${path}`, ...change })),
  );
  return (
    <ul class="changes">
      {fields.length === 0 && <li>Nothing differs in what it means.</li>}
      {fields.map(({ path, from, to }) => (
        <li key={path}>
          <code>{path}</code> <del>{valueText(from)}</del> → <ins>{valueText(to)}</ins>
        </li>
      ))}
    </ul>
  );
}
