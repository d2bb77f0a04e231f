// The model that answers for a requested name (section model_aliases).

type ModelAliases = Readonly<Record<string, string>>;

const DEFAULT = "default";

/**
 * A key that is the whole name wins, then the longest key that is a word of it (`haiku` of `claude-haiku-4-5`), in any
 * letter case. `default` stands in only for names that no backend knows. A model that an alias leads to is never led
 * further, so that aliases cannot form chains.
 */
export function resolveAlias(aliases: ModelAliases, model: string, isKnown: boolean): string {
  if (Object.hasOwn(aliases, model) && model !== DEFAULT) return aliases[model] as string;
  const entries = Object.entries(aliases);
  if (entries.some(([, target]) => target === model)) return model;
  let best: readonly [key: string, target: string] | undefined;
  const name = words(model);
  for (const entry of entries) {
    const [key] = entry;
    if (key !== DEFAULT && name.includes(words(key)) && key.length > (best?.[0].length ?? 0)) best = entry;
  }
  if (best !== undefined) return best[1];
  return isKnown || !Object.hasOwn(aliases, DEFAULT) ? model : (aliases[DEFAULT] as string);
}

/** "claude-haiku-4-5" as " claude haiku 4 5 ": a text inside it that begins and ends with a blank is whole words. */
function words(name: string): string {
  return ` ${name
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, " ")
    .trim()} `;
}
