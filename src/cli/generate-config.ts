// Prints the commented template; embedded as text, so that the compiled binary carries it.

import template from "./default-config.yaml" with { type: "text" };

/** The type of the import is that of a parsed YAML file; `type: "text"` makes it the text itself. */
export function defaultConfigText(): string {
  return template as unknown as string;
}
