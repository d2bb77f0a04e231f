// Keys: what each allows and until when, with new secrets, switching off, and the collection of their entries.

import { signal } from "@preact/signals";
import type { KeyList } from "../../../admin/key-schemas.ts";
import type { Action } from "../app/actions.ts";
import { setting } from "../app/hooks.ts";
import { type Collection, readSection, requestsAt } from "../collections/collection.ts";
import { CollectionPage } from "../collections/collection-page.tsx";
import { ShownSecret, secretIn } from "../collections/shown-secret.tsx";
import { dateTime, grouped, money } from "../format.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { Bar } from "../parts/card.tsx";
import { Field } from "../parts/field.tsx";
import { Link, RequestsOf } from "../parts/link.tsx";
import { Marked } from "../parts/marks.tsx";
import type { EntryValues, FieldSchema } from "../schema-form.ts";

type KeyRow = KeyList["keys"][number];

/** As many as one page of the admin API has. */
const LIST = "admin/keys?limit=10000";
const placeOf = (id: string) => `admin/keys/${encodeURIComponent(id)}`;

const PLACES = { configuration: "configuration", api_keys_file: "key file", key_store: "key store" } as const;

const TONES = { valid: "good", expired: "bad", disabled: "quiet" } as const;

const KEYS: Collection<KeyRow> = {
  page: "keys",
  title: "Keys",
  article: "a",
  noun: "key",
  empty: "There is no key: every client is one without a name. Add one to limit clients and to tell them apart.",
  list: {
    path: LIST,
    rowsOf: ({ keys }: KeyList) => keys,
    columns: [
      { title: "Key", value: ({ id }) => id, cell: ({ id }) => <RequestsOf by="key" name={id} class="strong" /> },
      { title: "State", value: stateOf, cell: (row) => <StateCell {...row} /> },
      {
        title: "Expires",
        value: ({ expires_at }) => expires_at ?? undefined,
        cell: ({ expires_at }) => (expires_at === null ? "never" : dateTime(expires_at)),
      },
      { title: "Owner", value: ownerOf, cell: (row) => ownerOf(row) || "–" },
      { title: "Scopes", value: ({ scopes }) => scopes.join(" "), cell: ({ scopes }) => scopes.join(", ") || "none" },
      {
        title: "Models",
        value: ({ models }) => models?.join(" "),
        cell: ({ models }) => <div class="clip">{models?.join(", ") ?? "all"}</div>,
      },
      {
        title: "Per minute",
        isNumber: true,
        value: ({ rate_limit }) => rate_limit ?? undefined,
        cell: ({ rate_limit }) => (rate_limit === null ? "–" : grouped(rate_limit)),
      },
      { title: "Lives in", value: ({ source }) => PLACES[source], cell: ({ source }) => PLACES[source] },
      { title: "Left", value: ({ tightest_budget: of }) => of?.share, cell: Left },
      { title: "Secret", cell: (row) => <SecretCell {...row} /> },
    ],
  },
  idOf: ({ id }) => id,
  fixed: ({ source }) => (source === "api_keys_file" ? "from api_keys_file: change it there" : undefined),
  idField: "id",
  async read(get, id, isNew) {
    // The version first: a change between the two is a conflict then, and not overlooked.
    const { schema, version } = await readSection<EntryValues>(get, "api_keys");
    const { keys } = await get<KeyList>(LIST);
    const record = keys.find((key) => key.id === id) ?? (id === undefined ? undefined : await get<KeyRow>(placeOf(id)));
    return {
      schema: entrySchema(schema, isNew),
      version: (isNew ? undefined : record?.version) ?? version,
      ids: keys.map((key) => key.id),
      // A digest of the secret is no id that could be written.
      entry: record && { ...record, id: record.has_own_id ? record.id : undefined },
    };
  },
  ...requestsAt("admin/keys"),
  removal:
    "Clients with this key are refused from now on, in mode blocking. What it owns (files, conversations, cached answers) cannot be reached any more.",
};

/** The secret of a key that is there changes by a rotation only, which also makes `previous`. */
function entrySchema(section: FieldSchema, isNew: boolean): FieldSchema {
  const { properties = {}, ...schema } = section.properties?.keys?.items ?? {};
  const { key, previous: _, ...others } = properties;
  const description = "Left empty, the gateway makes one and shows it once. ${VARIABLE} expands.";
  const secret = isNew ? { key: { ...key, description } } : {};
  return { ...schema, required: [], properties: { ...others, ...secret } };
}

/** Of its tightest budget. */
function Left({ tightest_budget: of }: KeyRow) {
  if (of === null) return <>–</>;
  const [left, limit] = [of.remaining, of.limit].map((value) => (of.amount === "cost" ? money(value) : grouped(value)));
  return (
    <Link to="budgets" query={{ of: of.budget }}>
      <Bar share={of.share} text={`${left} of ${limit} ${of.amount.replace("_", " ")}, ${of.budget}`} />
    </Link>
  );
}

export function KeysPage() {
  return <CollectionPage of={KEYS} />;
}

function ownerOf({ user_id, organization_id }: KeyRow): string {
  return [user_id, organization_id].filter(Boolean).join(", ");
}

function stateOf({ enabled, is_expired }: KeyRow): keyof typeof TONES {
  return !enabled ? "disabled" : is_expired ? "expired" : "valid";
}

function StateCell(row: KeyRow) {
  const { id, enabled, source } = row;
  const verb = enabled ? "Disable" : "Enable";
  return (
    <div class="row tight">
      <Marked tone={TONES[stateOf(row)]} text={stateOf(row)} />
      {source !== "api_keys_file" && (
        <ActionButton label={`${verb} ${id}`} action={switching(row)}>
          {verb}
        </ActionButton>
      )}
    </div>
  );
}

function SecretCell(row: KeyRow) {
  const { id, previous_until: until, source } = row;
  return (
    <>
      {source !== "api_keys_file" && (
        <div class="row tight">
          <ActionButton label={`Rotate ${id}`} action={rotating(row)}>
            Rotate
          </ActionButton>
          {until !== null && (
            <ActionButton label={`End old secret of ${id}`} action={ending(row)}>
              End old
            </ActionButton>
          )}
        </div>
      )}
      {until !== null && (
        <div class="faint">
          old one valid until
          <br />
          {dateTime(until)}
        </div>
      )}
    </>
  );
}

function switching({ id, enabled }: KeyRow): Action {
  return {
    title: enabled ? `Disable ${id}` : `Enable ${id}`,
    text: enabled
      ? "Requests with this key are refused from now on. It stays, with what it owns."
      : "Requests with this key are accepted from now on.",
    verb: enabled ? "Disable" : "Enable",
    isDangerous: enabled,
    asked: () => KEYS.change(id, { enabled: !enabled }, undefined),
  };
}

function ending({ id }: KeyRow): Action {
  return {
    title: `End the old secret of ${id}`,
    text: "Clients that still send the secret before the last rotation are refused from now on.",
    verb: "End it",
    isDangerous: true,
    asked: () => KEYS.change(id, { previous: null }, undefined),
  };
}

function rotating({ id }: KeyRow): Action {
  const overlap = signal("1h");
  return {
    title: `Rotate the secret of ${id}`,
    text: "The gateway makes a new secret and shows it once, here. The old one stays valid for the overlap, in which clients change to the new one.",
    verb: "Make a new secret",
    fields: () => (
      <Field
        id="overlap"
        label="Overlap, such as 30m, 24h or 7d; 0s: the old secret ends at once"
        value={overlap.value}
        set={setting(overlap)}
        isFirst
      />
    ),
    asked() {
      const text = overlap.value.trim();
      if (text === "") return undefined;
      return { method: "POST", path: `${placeOf(id)}/rotate`, body: { overlap: text } };
    },
    result(answer) {
      const secret = secretIn(answer);
      return secret === undefined ? undefined : <ShownSecret secret={secret} />;
    },
  };
}
