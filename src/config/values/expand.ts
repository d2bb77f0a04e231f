// ${VARIABLE} and ${VARIABLE:-default} in configuration strings; $${ stands for a literal ${.

export interface Expansion {
  text: string;
  /** The variables whose contents are in the text. */
  variables: string[];
  problems: { message: string; variable?: string }[];
}

export type Environment = Readonly<Record<string, string | undefined>>;

const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(\}|:-)/y;
const MAXIMUM_DEPTH = 16;

export function hasReference(text: string): boolean {
  return text.includes("${");
}

/** False where `${` stands only in the escape `$${`. */
export function namesVariable(text: string): boolean {
  return text.replaceAll("$${", " ").includes("${");
}

/** Every variable that is named, whether it is set or not, and those of defaults. */
export function variableNames(text: string): string[] {
  const names = text.replaceAll("$${", " ").matchAll(/\$\{([A-Za-z_][A-Za-z0-9_]*)/g);
  return [...new Set([...names].map(([, name]) => name as string))];
}

/**
 * As in a shell, `:-` also replaces an empty variable, and a default may hold references of its own. What a variable
 * contains is never expanded again, so that its owner cannot read other variables.
 */
export function expandVariables(text: string, env: Environment): Expansion {
  const result: Expansion = { text: "", variables: [], problems: [] };
  result.text = scan(text, 0, 0, env, result).text;
  return result;
}

/** Reads up to the end of the text, or inside a default up to its closing brace. */
function scan(
  text: string,
  from: number,
  depth: number,
  env: Environment,
  result: Pick<Expansion, "variables" | "problems">,
): { text: string; end: number } {
  let expanded = "";
  let position = from;
  while (position < text.length) {
    if (depth > 0 && text[position] === "}") return { text: expanded, end: position };
    if (text.startsWith("$${", position)) {
      expanded += "${";
      position += 3;
      continue;
    }
    if (!text.startsWith("${", position)) {
      expanded += text[position++];
      continue;
    }
    REFERENCE.lastIndex = position;
    const match = REFERENCE.exec(text);
    if (match === null || depth >= MAXIMUM_DEPTH) {
      result.problems.push({
        message: "${ must start ${VARIABLE} or ${VARIABLE:-default}; write $${ for a literal ${",
      });
      return { text: expanded, end: text.length };
    }
    const name = match[1] as string;
    const content = contentOf(env, name);
    position += match[0].length;
    if (match[2] === "}") {
      if (content === undefined) {
        result.problems.push({ message: `the environment variable ${name} is not set`, variable: name });
      } else {
        expanded += content;
        result.variables.push(name);
      }
      continue;
    }
    const isDefaultUsed = content === undefined || content === "";
    // A default that is not used is read only to find its end: what it refers to may be unset.
    const inner = scan(text, position, depth + 1, env, isDefaultUsed ? result : { variables: [], problems: [] });
    if (inner.end >= text.length) {
      result.problems.push({ message: `the default of \${${name}:-…} has no closing brace` });
      return { text: expanded, end: text.length };
    }
    position = inner.end + 1;
    if (isDefaultUsed) expanded += inner.text;
    else {
      expanded += content;
      result.variables.push(name);
    }
  }
  return { text: expanded, end: position };
}

/** Only text counts: a name such as "constructor" must not find what every object inherits. */
function contentOf(env: Environment, name: string): string | undefined {
  const content: unknown = env[name];
  return typeof content === "string" ? content : undefined;
}
