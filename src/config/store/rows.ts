// Records as rows of the database, whose columns have the names of their fields: undefined is NULL there, and what is
// named in `json` is kept as JSON.

export type DatabaseRow = Record<string, string | number | null>;

export function fromRow<Entry>(row: DatabaseRow, json: readonly string[]): Entry {
  return mapFields(row, (field, value) => {
    if (value === null) return undefined;
    return json.includes(field) ? JSON.parse(value as string) : value;
  }) as Entry;
}

export function toRow(entry: object, json: readonly string[]): DatabaseRow {
  return mapFields(entry, (field, value) => {
    if (value === undefined) return null;
    return json.includes(field) ? JSON.stringify(value) : value;
  }) as DatabaseRow;
}

function mapFields(record: object, change: (field: string, value: unknown) => unknown): object {
  return Object.fromEntries(Object.entries(record).map(([field, value]) => [field, change(field, value)]));
}
