// What differs between two configurations, field by field, as the gateway tells it.

import type { SectionChanges } from "../../../admin/config-schemas.ts";
import { flatten, valueText } from "../settings-text.ts";

type ChangedFields = SectionChanges[string];

export function ChangeList({ changes }: { changes: SectionChanges }) {
  const fields = Object.entries(changes).flatMap(([section, each]) =>
    Object.entries(each).map(([path, change]) => [`${section}.${path}`, change] as const),
  );
  return <FieldChanges changes={Object.fromEntries(fields)} />;
}

/** By the path of the field. */
export function FieldChanges({ changes }: { changes: ChangedFields }) {
  const fields = Object.entries(changes);
  return (
    <ul class="changes">
      {fields.length === 0 && <li>Nothing differs in what it means.</li>}
      {fields.map(([path, { from, to }]) => (
        <li key={path}>
          <code>{path}</code> {from !== undefined && <Change from={from} to={to} />}
        </li>
      ))}
    </ul>
  );
}

/** An entry that comes or goes is shown by its members. */
function Change({ from, to }: ChangedFields[string]) {
  if (from === null && isEntry(to)) return <ins>added: {membersOf(to)}</ins>;
  if (to === null && isEntry(from)) {
    return (
      <>
        removed: <del>{membersOf(from)}</del>
      </>
    );
  }
  return (
    <>
      <del>{textOf(from)}</del> → <ins>{textOf(to)}</ins>
    </>
  );
}

function isEntry(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function membersOf(entry: unknown): string {
  return flatten(entry)
    .map(([path, value]) => `${path} ${valueText(value)}`)
    .join(", ");
}

function textOf(value: unknown): string {
  return value === null ? "not set" : valueText(value);
}
