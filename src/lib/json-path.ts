// Where a value stands inside a JSON value, in the spelling of error messages: messages[0].content[1].image_url.url.

/** The path to the first value that is wanted, depth first; undefined when there is none. */
export function pathTo(value: unknown, isWanted: (value: unknown) => boolean, path = ""): string | undefined {
  if (isWanted(value)) return path;
  if (Array.isArray(value)) return firstPath(value.entries(), isWanted, (index) => `${path}[${index}]`);
  if (typeof value !== "object" || value === null) return undefined;
  return firstPath(Object.entries(value), isWanted, (name) => (path === "" ? String(name) : `${path}.${name}`));
}

function firstPath(
  members: Iterable<[string | number, unknown]>,
  isWanted: (value: unknown) => boolean,
  pathOf: (key: string | number) => string,
): string | undefined {
  for (const [key, member] of members) {
    const found = pathTo(member, isWanted, pathOf(key));
    if (found !== undefined) return found;
  }
  return undefined;
}
