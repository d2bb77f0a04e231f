// A configuration that is refused, for programs that gave it as an object.

import type { Problem } from "./problems.ts";
import { formatPath } from "./values.ts";

export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
  /** Without values of settings. */
  readonly problems: readonly { readonly field: string; readonly message: string }[];

  /** @param message - has a line for each problem, with the field and the fix */
  constructor(message: string, problems: readonly Problem[] = []) {
    super(message);
    this.problems = problems.map(({ path, message }) => ({ field: formatPath(path), message }));
  }
}
