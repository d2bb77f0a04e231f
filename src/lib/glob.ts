// Glob patterns with "*" as the only special character; it stands for any text, the empty one included.

export type GlobMatcher = (text: string) => boolean;

export function isGlob(pattern: string): boolean {
  return pattern.includes("*");
}

/**
 * Every literal between two stars is taken at its leftmost place. That is never wrong when "*" is the only wildcard,
 * so nothing is tried twice and no text can make the match slow, which a regular expression made of the pattern could.
 */
export function compileGlob(pattern: string): GlobMatcher {
  const literals = pattern.split("*");
  const prefix = literals.shift() as string;
  const suffix = literals.pop();
  if (suffix === undefined) return (text) => text === pattern;
  const inner = literals.filter((literal) => literal !== "");

  return (text) => {
    const end = text.length - suffix.length;
    if (end < prefix.length || !text.startsWith(prefix) || !text.endsWith(suffix)) return false;
    let position = prefix.length;
    for (const literal of inner) {
      const found = text.indexOf(literal, position);
      if (found < 0) return false;
      position = found + literal.length;
    }
    return position <= end;
  };
}
