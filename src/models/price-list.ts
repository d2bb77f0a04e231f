// Reads the public price list of LiteLLM (model_prices_and_context_window.json) as facts about models. Source of its members:
// litellm 1.110.2 of PyPI, the entry "sample_spec" and the file itself.

import { z } from "zod";
import type { BackendKind } from "../backends/kind.ts";
import { BACKEND_KINDS } from "../backends/kinds.ts";
import { DAY, type FactEntry, type ModelMetadata } from "../config/sections/metadata-entry.ts";
import { compact, isObject, type JsonObject } from "../lib/json.ts";
import { resolveBackendKind } from "../names.ts";

interface PriceList {
  entries: readonly FactEntry[];
  /** Of vendors that are no type of backend, and of uses that no endpoint has. */
  skipped: number;
}

type PriceListResult = PriceList | { problems: string[] };

const MAX_PROBLEMS = 20;
/** Describes the form of the others, and is none. */
const SPECIMEN = "sample_spec";
/** A token for more than this is a mistake of a million. */
const MOST_FOR_A_TOKEN = 0.01;

const perToken = z.number().min(0, "must not be negative").max(MOST_FOR_A_TOKEN, `must be at most ${MOST_FOR_A_TOKEN}`);
const tokens = z.int().min(0, "must not be negative");

const entrySchema = z.object({
  litellm_provider: z.string().optional(),
  mode: z.string().nullish(),
  input_cost_per_token: perToken.nullish(),
  output_cost_per_token: perToken.nullish(),
  cache_read_input_token_cost: perToken.nullish(),
  cache_creation_input_token_cost: perToken.nullish(),
  output_cost_per_reasoning_token: perToken.nullish(),
  output_cost_per_image: z.number().min(0, "must not be negative").max(1_000, "must be at most 1000").nullish(),
  input_cost_per_second: z.number().min(0, "must not be negative").max(100, "must be at most 100").nullish(),
  max_input_tokens: tokens.nullish(),
  max_output_tokens: tokens.nullish(),
  supports_vision: z.boolean().nullish(),
  supports_audio_input: z.boolean().nullish(),
  supports_video_input: z.boolean().nullish(),
  supports_function_calling: z.boolean().nullish(),
  supports_reasoning: z.boolean().nullish(),
  deprecation_date: z.string().regex(DAY, 'expected a day, such as "2027-01-31"').nullish(),
});

type ListedEntry = z.output<typeof entrySchema>;

/** A problem names the entry and the member; where there is one, nothing is taken. */
export function readPriceList(text: string): PriceListResult {
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    return { problems: ["is not JSON"] };
  }
  if (!isObject(list)) return { problems: ["is not an object of entries by the names of models"] };
  const problems: string[] = [];
  const entries = new Map<string, FactEntry>();
  let skipped = 0;
  for (const [name, value] of Object.entries(list as JsonObject)) {
    if (name === SPECIMEN) continue;
    const parsed = entrySchema.safeParse(value);
    if (!parsed.success) {
      problems.push(
        ...parsed.error.issues.map(({ path, message }) => `${[JSON.stringify(name), ...path].join(".")}: ${message}`),
      );
      if (problems.length > MAX_PROBLEMS) return { problems: [...problems.slice(0, MAX_PROBLEMS), "and more"] };
      continue;
    }
    const entry = toFact(name, parsed.data);
    if (entry === undefined) skipped++;
    // Of a model that is listed with its vendor and without, the first one counts.
    else if (!entries.has(factKey(entry))) entries.set(factKey(entry), entry);
  }
  if (problems.length > 0) return { problems };
  return entries.size === 0
    ? { problems: ["has no entry of a known vendor"] }
    : { entries: [...entries.values()], skipped };
}

/** What an entry is the only one of. */
export function factKey({ id, vendor }: FactEntry): string {
  return `${vendor ?? ""} ${id}`;
}

function toFact(name: string, listed: ListedEntry): FactEntry | undefined {
  const { litellm_provider: provider = "", max_input_tokens, max_output_tokens } = listed;
  const family = provider.replace(/-.*$/, "");
  const kind = kindOf([provider, family, family.replace(/_(?:ai|converse)$/, "")]);
  const capabilities = capabilitiesOf(listed);
  if (kind === undefined || capabilities === undefined || OF_ONE_SIZE.test(name)) return undefined;
  const prefix = [provider, family].find((vendor) => name.startsWith(`${vendor}/`));
  const id = prefix === undefined ? name : name.slice(prefix.length + 1);
  if (id === "" || id.includes("*")) return undefined;
  const limits = compact({ context_window: max_input_tokens || undefined, max_output: max_output_tokens || undefined });
  const metadata: ModelMetadata = compact({
    capabilities: capabilities.length === 0 ? undefined : capabilities,
    available_until: listed.deprecation_date ?? undefined,
    pricing: pricingOf(listed),
    limits: Object.keys(limits).length === 0 ? undefined : limits,
  });
  return { id, aliases: [], metadata, ...(!kind.ownsNames && { vendor: kind.name }) };
}

/** "low/1024-x-1024/name" is the price of a picture, not the name of a model. */
const OF_ONE_SIZE = /\d-x-\d/;

/** Families of a vendor's models have names of their own, such as "fireworks_ai-embedding-models". */
function kindOf(providers: readonly string[]): BackendKind | undefined {
  const name = providers.map(resolveBackendKind).find((kind) => kind !== undefined);
  return name && BACKEND_KINDS[name];
}

/** Undefined for a use that no endpoint has. */
function capabilitiesOf(listed: ListedEntry): string[] | undefined {
  switch (listed.mode) {
    case "chat":
    case "responses":
      return [
        "chat",
        ...(listed.supports_vision ? ["vision"] : []),
        ...(listed.supports_audio_input ? ["audio"] : []),
        ...(listed.supports_video_input ? ["video"] : []),
        ...(listed.supports_function_calling ? ["function_calling"] : []),
        ...(listed.supports_reasoning ? ["reasoning"] : []),
      ];
    case "embedding":
    case "image_generation":
    case "image_edit":
    case "moderation":
    case "rerank":
      return [listed.mode];
    case "completion":
    case "audio_transcription":
    case "audio_speech":
      return [];
    default:
      return undefined;
  }
}

function pricingOf(listed: ListedEntry): ModelMetadata["pricing"] {
  const pricing = compact({
    input_tokens: perThousand(listed.input_cost_per_token),
    output_tokens: perThousand(listed.output_cost_per_token),
    cache_read_tokens: perThousand(listed.cache_read_input_token_cost),
    // 0 stands for a vendor that does not count what it writes.
    cache_write_tokens: perThousand(listed.cache_creation_input_token_cost || undefined),
    reasoning_tokens: perThousand(listed.output_cost_per_reasoning_token),
    image: listed.output_cost_per_image ?? undefined,
    audio_minute: times(listed.input_cost_per_second, 60),
  });
  return Object.keys(pricing).length === 0 ? undefined : pricing;
}

function perThousand(price: number | null | undefined): number | undefined {
  return times(price, 1_000);
}

/** Without the traces of binary fractions. */
function times(price: number | null | undefined, count: number): number | undefined {
  return price === undefined || price === null ? undefined : Number((price * count).toPrecision(12));
}
