// Rules about the queue that the schema cannot say: backends and classes that are named and do not exist.

import type { Settings } from "../config/sections/registry.ts";
import type { Problem } from "../config/values/problems.ts";
import type { Path } from "../config/values/values.ts";
import { nearest } from "../lib/nearest.ts";

/** Each answer is a problem at that path of the configuration. */
export function admissionProblems({ admission, backends, api_keys, routes }: Settings): Problem[] {
  const problems: Problem[] = [];
  function check(path: Path, noun: string, name: string | undefined, known: readonly string[]): void {
    if (name === undefined || known.includes(name)) return;
    const near = nearest(name, known);
    const hint = near === undefined ? `; there are: ${known.join(", ")}` : `; did you mean "${near}"?`;
    problems.push({ path, message: `there is no ${noun} "${name}"${hint}` });
  }
  const names = backends.map(({ name }) => name);
  for (const name of Object.keys(admission.backends)) check(["admission", "backends", name], "backend", name, names);
  const classes = Object.keys(admission.queue.classes);
  const checkClass = (path: Path, name: string | undefined) =>
    check(path, "class in admission.queue.classes", name, classes);
  for (const [index, key] of api_keys.keys.entries()) {
    checkClass(["api_keys", "keys", index, "class"], key.class);
    checkClass(["api_keys", "keys", index, "max_class"], key.max_class);
  }
  for (const [index, route] of routes.entries()) checkClass(["routes", index, "class"], route.class);
  return problems;
}
