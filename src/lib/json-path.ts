// Where a value stands inside a JSON value, in the spelling of error messages: messages[0].content[1].image_url.url.

/** The path to the first value that is wanted, depth first; undefined when there is none. */
export function pathTo(value: unknown, isWanted: (value: unknown) => boolean, path = ""): string | undefined {
  if (isWanted(value)) return path;
  if (typeof value !== "object" || value === null) return undefined;
  for (const [name, member] of Object.entries(value)) {
    const step = Array.isArray(value) ? `[${name}]` : path === "" ? name : `.${name}`;
    const found = pathTo(member, isWanted, path + step);
    if (found !== undefined) return found;
  }
  return undefined;
}
