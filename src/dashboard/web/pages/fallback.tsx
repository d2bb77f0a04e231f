// Fallback chains: which models answer, in order, when the backends of another cannot.

import { type Collection, readSection } from "../collections/collection.ts";
import { CollectionPage } from "../collections/collection-page.tsx";
import type { CurlRequest } from "../curl.ts";
import { RequestsOf } from "../parts/link.tsx";
import type { EntryValues, FieldSchema } from "../schema-form.ts";

type Chains = Readonly<Record<string, readonly string[]>>;

interface Fallback {
  enabled: boolean;
  fallback_chains: Chains;
}

interface ChainRow {
  model: string;
  models: readonly string[];
  isOff: boolean;
}

const PATH = "admin/config/fallback";
const SECTION_FIELD = "fallback.fallback_chains";

const CHAINS: Collection<ChainRow> = {
  page: "fallback",
  title: "Fallback chains",
  article: "a",
  noun: "fallback chain",
  about: "The models of a chain are asked in order when no backend of its model can answer.",
  empty: "There is no fallback chain: a request fails when no backend of its model can answer.",
  list: {
    path: PATH,
    rowsOf: ({ config }: { config: Fallback }) =>
      Object.entries(config.fallback_chains).map(([model, models]) => ({ model, models, isOff: !config.enabled })),
    columns: [
      {
        title: "Model",
        value: ({ model }) => model,
        cell: ({ model }) => <RequestsOf by="model" name={model} class="strong" />,
      },
      {
        title: "Fallback",
        class: "wide",
        value: ({ models }) => models.join(" "),
        cell: ({ models }) => models.join(" → "),
      },
      { title: "State", cell: ({ isOff }) => (isOff ? "off: fallback.enabled is false" : "on") },
    ],
  },
  idOf: ({ model }) => model,
  idField: "model",
  async read(get, id) {
    const { schema, config, version } = await readSection<Fallback>(get, "fallback");
    // Entries, because a model may have any name, "__proto__" too.
    const chains = Object.entries(config.fallback_chains);
    const [model, models] = chains.find(([name]) => name === id) ?? [];
    return {
      schema: entrySchema(schema),
      version,
      ids: chains.map(([name]) => name),
      entry: models && { model, models },
    };
  },
  add: ({ model, models }, version) => patch({ [String(model)]: models }, version),
  change: (id, { models }, version) => patch({ [id]: models }, version),
  remove: (id) => patch({ [id]: null }, undefined),
  removal: "Requests for this model fail from now on when no backend of it can answer.",
  // One chain is changed; where it closes a circle, another one may be named.
  fieldOf: (problem) => (problem.startsWith(SECTION_FIELD) ? "models" : problem),
};

function patch(chains: EntryValues, version: number | undefined): CurlRequest {
  const config = { fallback_chains: chains };
  return { method: "PATCH", path: PATH, body: version === undefined ? config : { config, version } };
}

function entrySchema(section: FieldSchema): FieldSchema {
  const models = section.properties?.fallback_chains?.additionalProperties as FieldSchema | undefined;
  return {
    type: "object",
    required: ["model", "models"],
    properties: {
      model: { type: "string", description: "The model that clients ask for." },
      models: { ...models, description: "Models that answer instead, in order." },
    },
  };
}

export function FallbackPage() {
  return <CollectionPage of={CHAINS} />;
}
