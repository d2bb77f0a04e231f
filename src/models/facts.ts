// The facts about models that come with Signalbox; embedded as text, so that the compiled binary carries them.

import type { FactEntry, ModelMetadata } from "../config/sections/metadata-entry.ts";
import { compact } from "../lib/json.ts";
import { lazily } from "../lib/lazily.ts";
import type { BackendKindName } from "../names.ts";
import text from "./facts.yaml" with { type: "text" };

/** A row of the file, whose head says what the members mean. */
interface FactRow {
  id: string;
  at?: BackendKindName;
  aliases?: string[];
  name?: string;
  by?: string;
  can?: string[];
  context?: number;
  output?: number;
  price?: { in?: number; cached?: number; written?: number; out?: number; thought?: number };
  cutoff?: string;
  until?: string;
  from: string;
}

interface FactsFile {
  date: string;
  sources: Readonly<Record<string, string>>;
  models: readonly FactRow[];
}

/** Read when they are first asked for, and checked by a test only: the first request of a gateway waits for them. */
export const builtinFacts = lazily((): FactsFile & { entries: readonly FactEntry[] } => {
  // The type of the import is that of a parsed YAML file; `type: "text"` makes it the text itself.
  const file = Bun.YAML.parse(text as unknown as string) as FactsFile;
  return { ...file, entries: file.models.map(toEntry) };
});

function toEntry({ id, at, aliases = [], ...row }: FactRow): FactEntry {
  const limits = compact({ context_window: row.context, max_output: row.output });
  const { price } = row;
  const metadata: ModelMetadata = compact({
    display_name: row.name,
    developer: row.by,
    capabilities: row.can,
    knowledge_cutoff: row.cutoff,
    available_until: row.until,
    pricing:
      price &&
      compact({
        input_tokens: perThousand(price.in),
        output_tokens: perThousand(price.out),
        cache_read_tokens: perThousand(price.cached),
        cache_write_tokens: perThousand(price.written),
        reasoning_tokens: perThousand(price.thought),
      }),
    limits: Object.keys(limits).length === 0 ? undefined : limits,
  });
  return compact({ id, aliases, metadata, vendor: at });
}

/** Without the traces of binary fractions, so that 0.15 is 0.00015. */
function perThousand(perMillion: number | undefined): number | undefined {
  return perMillion === undefined ? undefined : Number((perMillion / 1_000).toPrecision(12));
}
